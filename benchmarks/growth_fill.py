"""Fills a database: a million runs and sessions, 100,000 users, scripts and hooks.

Fills the migrated, empty PostgreSQL database at DATABASE_URL in two or three minutes:

    DATABASE_URL=postgres://… .venv/bin/python manage.py migrate
    DATABASE_URL=postgres://… .venv/bin/python benchmarks/growth_fill.py

Organisation 1 has half of the runs and a tenth of the users, scripts and keys; the others share the
rest.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import django
from django.db import connection, transaction

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# Kinds of what has a digest.
DEVICE, HOOK, SESSION_OF_DEVICE = 4, 7, 9

# Ids that can be computed from a number, so that rows find each other without a join; those of
# runs, sessions and events begin with their time, as version 7 does.
_FUNCTIONS = """
CREATE FUNCTION pg_temp.id(kind int, n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
    SELECT (lpad(to_hex(kind), 2, '0') || substr(md5(kind || '-' || n), 3))::uuid $$;
CREATE FUNCTION pg_temp.id_at(moment timestamptz, n bigint)
    RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
    SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0')
            || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 5, 15))::uuid $$;
-- Nobody knows the secret of a digest, but of those that are given.
CREATE TEMPORARY TABLE given_digest (kind int, n bigint, digest text, PRIMARY KEY (kind, n));
CREATE FUNCTION pg_temp.digest(kind int, n bigint) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT coalesce(
        (SELECT given.digest FROM given_digest given WHERE given.kind = $1 AND given.n = $2),
        md5(kind || '-' || n) || md5(n || '-' || kind)) $$;
-- One in ten is the giant's.
CREATE FUNCTION pg_temp.owner(n bigint, organisations int)
    RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
    SELECT pg_temp.id(1, CASE WHEN n % 10 = 0 THEN 1 ELSE 2 + n % (organisations - 1) END) $$;
"""

# what, how many (a name of `counts`), the INSERT of rows first..last (numbered n)
STEPS = (
    (
        "organisations",
        "organisations",
        """INSERT INTO accounts_organisation (id, name, is_active, created_at, revised_at)
        SELECT pg_temp.id(1, n), 'Organisation ' || n, true, now() - interval '2 years', now()
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "users",
        "users",
        """INSERT INTO accounts_user (id, password, is_superuser, email, delivery_email, name,
            phone, is_active, is_staff, created_at, home_id)
        SELECT pg_temp.id(2, n), '!', false, 'user' || n || '@example.com',
            'user' || n || '@example.com', 'User ' || n, '', true, false,
            now() - n * interval '10 minutes', pg_temp.owner(n, %(organisations)s)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "memberships",
        "users",
        """INSERT INTO accounts_membership (role, created_at, user_id, organisation_id)
        SELECT 'member', now(), pg_temp.id(2, n), pg_temp.owner(n, %(organisations)s)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "API keys",
        "api_keys",
        """INSERT INTO accounts_apikey (id, name, key, digest, pepper_version, previous_digest,
            allowed_networks, created_at, organisation_id)
        SELECT pg_temp.id(3, n), 'Key ' || n, 'mhk_' || lpad(n::text, 12, '0'),
            pg_temp.digest(3, n), 1, '', '[]', now() - n * interval '1 hour',
            pg_temp.owner(n, %(organisations)s)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "devices",
        "users",
        """INSERT INTO accounts_devicetoken (id, device, label, digest, pepper_version,
            created_at, user_id)
        SELECT pg_temp.id(4, n), gen_random_uuid(), 'Phone', pg_temp.digest(4, n), 1,
            now() - n * interval '10 minutes', pg_temp.id(2, n)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "sessions of keys",
        "sessions_of_keys",
        """INSERT INTO sessions_api_session (id, digest, email, created_at, last_used_at,
            expires_at, api_key_id)
        SELECT pg_temp.id_at(at, n), pg_temp.digest(8, n), '', at, at, at + interval '1 hour',
            pg_temp.id(3, 1 + n %% %(api_keys)s)
        FROM (SELECT n, now() - (n %% 4000) * interval '1 second' AS at
              FROM generate_series(%(first)s, %(last)s) n) rows""",
    ),
    (
        "sessions of devices",
        "sessions_of_devices",
        """INSERT INTO sessions_api_session (id, digest, email, created_at, last_used_at,
            expires_at, device_token_id)
        SELECT pg_temp.id_at(at, n), pg_temp.digest(9, n), '', at, at, at + interval '90 days',
            pg_temp.id(4, 1 + n %% %(users)s)
        FROM (SELECT n, now() - n * interval '9 seconds' AS at
              FROM generate_series(%(first)s, %(last)s) n) rows""",
    ),
    (
        "scripts",
        "scripts",
        """INSERT INTO scripts_engine_script (id, name, timeout_seconds, is_enabled, created_at,
            updated_at, organisation_id)
        SELECT pg_temp.id(5, n), 'Script ' || n, 10, true, now() - n * interval '10 minutes',
            now(), pg_temp.owner(n, %(organisations)s)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "versions",
        "scripts",
        """INSERT INTO scripts_engine_scriptversion (id, number, source, created_at, script_id)
        SELECT pg_temp.id(6, n), 1, repeat('-- ' || n || chr(10), 30) || %(source)s, now(),
            pg_temp.id(5, n)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "current versions",
        "scripts",
        """UPDATE scripts_engine_script SET current_version_id = pg_temp.id(6, n)
        FROM generate_series(%(first)s, %(last)s) n WHERE id = pg_temp.id(5, n)""",
    ),
    (
        "hooks",
        "scripts",
        """INSERT INTO hooks_hook (id, name, digest, pepper_version, previous_digest,
            is_enabled, created_at, script_id)
        SELECT pg_temp.id(7, n), 'Hook ' || n, pg_temp.digest(7, n), 1, '', true,
            now() - n * interval '10 minutes', pg_temp.id(5, n)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "runs",
        "runs",
        # The giant's are of its first 100 scripts; 1 in 100 failed, 1 in 200 was started by hand.
        """INSERT INTO scripts_engine_run (id, trigger, status, started_at, queued_ms,
            duration_ms, request_method, request_query, request_headers, request_body,
            response_status, response_headers, response_body, logs, host_calls, error_message,
            error_traceback, hook_id, organisation_id, script_id, script_version_id)
        SELECT pg_temp.id_at(at, n),
            CASE WHEN n %% 200 = 7 THEN 'admin-graphql' ELSE 'hook' END,
            CASE WHEN n %% 100 = 3 THEN 'failed' ELSE 'succeeded' END,
            at, 0.1, 1.5, 'POST', '', '[["Content-Type", "application/json"]]',
            decode(repeat(md5(n::text), 16), 'hex'), 200, '[]', decode(md5(n::text), 'hex'),
            '[]', '[]', '', '', pg_temp.id(7, script), pg_temp.owner(script, %(organisations)s),
            pg_temp.id(5, script), pg_temp.id(6, script)
        FROM (SELECT n, now() - (%(runs)s - n) * interval '2 seconds' AS at,
                  CASE WHEN n %% 2 = 0 THEN 10 * (1 + n / 2 %% 100)
                      ELSE 1 + n %% (%(scripts)s - 1) END AS script
              FROM generate_series(%(first)s, %(last)s) n) rows""",
    ),
    (
        "events",
        "events",
        """INSERT INTO accounts_authevent (id, at, kind, reason, email, credential, user_agent,
            request_id, user_id, organisation_id)
        SELECT pg_temp.id_at(at, n), at,
            CASE WHEN n %% 50 = 0 THEN 'session.refused' ELSE 'session.opened' END, '', '',
            md5(n::text), 'curl/8', '', pg_temp.id(2, 1 + n %% %(users)s),
            pg_temp.owner(1 + n %% %(users)s, %(organisations)s)
        FROM (SELECT n, now() - (%(events)s - n) * interval '30 seconds' AS at
              FROM generate_series(%(first)s, %(last)s) n) rows""",
    ),
    (
        "PIN challenges",
        "users",
        """INSERT INTO accounts_pinchallenge (id, email, opened_at, expires_at, ended_at,
            user_id)
        SELECT pg_temp.id_at(at, n), 'user' || n || '@example.com', at, at, at,
            pg_temp.id(2, n)
        FROM (SELECT n, now() - n * interval '1 second' AS at
              FROM generate_series(%(first)s, %(last)s) n) rows""",
    ),
    (
        "PIN failures",
        "users",
        """INSERT INTO accounts_pinfailures (bucket, email, failures_today, day_started_at,
            consecutive_failures)
        SELECT 'user' || n || '@example.com', 'user' || n || '@example.com', 1,
            now() - n * interval '1 second', n %% 2
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "rate windows",
        "rate_windows",
        """INSERT INTO accounts_ratecounter (key, hits, ends_at)
        SELECT 'pin-send-to/user' || n || '@example.com/1/60', 1,
            ((extract(epoch FROM now()) + n - 0.9 * %(rate_windows)s) * 1000000)::bigint
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
    (
        "stored values",
        "stored_values",
        """INSERT INTO scripts_engine_storedvalue (key, value, expires_at, updated_at,
            organisation_id)
        SELECT convert_to('key' || n, 'UTF8'), '1',
            now() + (n - 0.1 * %(stored_values)s) * interval '1 second', now(),
            pg_temp.owner(n, %(organisations)s)
        FROM generate_series(%(first)s, %(last)s) n""",
    ),
)
BATCH = 100_000


class GivenDigest(NamedTuple):
    """The digest of the n-th secret of its kind."""

    kind: int
    n: int
    digest: str


def counts(rows: int, scripts: int) -> dict[str, int]:
    """Number of rows of each kind."""
    return {
        "organisations": max(10, rows // 1_000),
        "users": rows // 10,
        "api_keys": rows // 500,
        "sessions_of_keys": rows // 5,
        "sessions_of_devices": rows - rows // 5,
        "scripts": scripts,
        "runs": rows,
        "events": rows,
        "rate_windows": rows // 5,
        "stored_values": rows // 5,
    }


def fill(
    sizes: dict[str, int],
    *,
    source: str = 'return "ok"',
    digests: Iterable[GivenDigest] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Every script has this source and a hook."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")
        connection.connection.max_wait_seconds = None
        cursor.execute(_FUNCTIONS)
        cursor.executemany("INSERT INTO given_digest VALUES (%s, %s, %s)", list(digests))
        for what, name, statement in STEPS:
            began, count = time.monotonic(), sizes[name]
            for first in range(1, count + 1, BATCH):
                last = min(first + BATCH - 1, count)
                with transaction.atomic():
                    # Ids are computed: the foreign keys are right, and checked by nobody here.
                    cursor.execute("SET LOCAL session_replication_role = replica")
                    cursor.execute("SET LOCAL synchronous_commit = off")
                    numbers = {"first": first, "last": last, "source": source}
                    cursor.execute(statement, sizes | numbers)
            say(f"{what}: {count:,} in {time.monotonic() - began:.0f} s")
        say("VACUUM ANALYZE")
        cursor.execute("VACUUM ANALYZE")


def main() -> None:
    fill(counts(rows=1_000_000, scripts=100_000))


if __name__ == "__main__":
    django.setup()
    main()
