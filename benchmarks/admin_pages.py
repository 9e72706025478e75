"""Measures the administrator's pages with a million runs.

    .venv/bin/python benchmarks/admin_pages.py [--runs 1000000] [--plans]

Fills a database, SQLite in a temporary directory or the empty one at DATABASE_URL, and requests the
real pages. Prints medians in ms: the duration of a page, this process's CPU time (which includes
SQLite's), and the duration of the queries (PostgreSQL's). A database that already contains runs is
measured as it is.
"""

# ruff: noqa: PLC0415  (the project is imported once its settings are known)
from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

ORGANISATIONS, SCRIPTS, DAYS, BATCH, REPEAT = 40, 400, 5, 1_000, 5
# Acme has the first part of all runs, the others share the rest.
ACME_SHARE = 0.3
OUTCOMES = {"succeeded": 96.0, "failed": 3.0, "timed-out": 0.8, "out-of-memory": 0.2}
HTTP_STATUS = {"succeeded": 200, "failed": 500, "timed-out": 504, "out-of-memory": 500}
HEADERS = [[f"X-Header-{number}", "some value of it"] for number in range(8)]
BODY = b'{"items": [' + b'{"name": "tea", "quantity": 2, "price": 4.5},' * 6 + b"{}]}"
LOGS = [{"at": 1.7e9, "level": "info", "text": "order of 3 items, total 17.5"}] * 3


def id_at(moment: float, chance: random.Random) -> uuid.UUID:
    """A UUIDv7 as if created at that time, in epoch seconds."""
    tail = chance.getrandbits(74)
    return uuid.UUID(
        int=(int(moment * 1000) << 80) | (7 << 76) | (tail >> 62 << 64) | (2 << 62) | tail % 2**62
    )


def made_up_runs(
    count: int, hooks: list[Any], acme_share: float = ACME_SHARE
) -> Iterator[dict[str, Any]]:
    """The columns that differ between runs; oldest first, evenly spread over the days."""
    chance = random.Random(7)
    now = datetime.now(UTC).timestamp()
    of_acme = [hook for hook in hooks if hook.script.organisation.name == "Acme"]
    of_others = [hook for hook in hooks if hook.script.organisation.name != "Acme"]
    statuses = chance.choices([*OUTCOMES], [*OUTCOMES.values()], k=count)
    for number, status in enumerate(statuses):
        asked = now - DAYS * 86_400 * (1 - number / count)
        hook = chance.choice(of_acme if chance.random() < acme_share else of_others)
        is_by_hook = chance.random() < 0.995
        yield {
            "id": id_at(asked, chance),
            "organisation": hook.script.organisation_id,
            "script": hook.script_id,
            "script_version": hook.script.current_version_id,
            "hook_id": hook.pk if is_by_hook else None,
            "trigger": "hook" if is_by_hook else "admin",
            "status": status,
            "started_at": datetime.fromtimestamp(asked + 0.002, UTC),
            "duration_ms": round(chance.lognormvariate(0.5, 1.2), 3),
            "response_status": HTTP_STATUS[status],
            "error_message": "" if status == "succeeded" else "attempt to index a nil value",
            "error_line": None if status == "succeeded" else 4,
        }


def insert(runs: Iterator[dict[str, Any]], count: int) -> None:
    """Inserts without the ORM, which would take ten times as long."""
    from django.db import connection, transaction

    from scripts_engine.models import Run

    fields = {field.name: field for field in Run._meta.concrete_fields}
    alike = Run(
        queued_ms=0.1,
        request_method="POST",
        request_headers=HEADERS,
        request_body=BODY,
        client_address="203.0.113.9",
        response_body=b'{"items": 3, "total": 17.5}',
        logs=LOGS,
    )
    constants = {
        name: field.get_db_prep_save(field.pre_save(alike, add=True), connection)
        for name, field in fields.items()
    }
    columns = ", ".join(f'"{field.column}"' for field in fields.values())
    places = f"({', '.join(['%s'] * len(fields))})"
    started, done = time.monotonic(), 0
    while batch := list(islice(runs, BATCH)):
        rows = [
            constants | {n: fields[n].get_db_prep_save(v, connection) for n, v in run.items()}
            for run in batch
        ]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "scripts_engine_run" ({columns}) '
                f"VALUES {', '.join([places] * len(rows))}",
                [value for row in rows for value in row.values()],
            )
        done += len(batch)
        seconds = time.monotonic() - started
        print(
            f"\r{done:>9} of {count} runs in {seconds:.0f} s", end="", file=sys.stderr, flush=True
        )
    print(file=sys.stderr)


def fill(count: int) -> None:
    from accounts.flows.organisations import create_organisation
    from accounts.flows.users import create_user
    from accounts.models import Role, User
    from hooks.flows.hooks import issue_hook
    from scripts_engine.flows.scripts import create_script
    from scripts_engine.runs.spec import NOBODY

    names = ["Acme", *(f"Organisation {number}" for number in range(1, ORGANISATIONS))]
    organisations = [create_organisation(name) for name in names]
    User.objects.create_superuser("root@example.com", "a password of root")
    bob = create_user(organisations[0], email="bob@example.com", role=Role.ADMINISTRATOR)
    dora = create_user(organisations[1], email="dora@example.com", role=Role.ADMINISTRATOR)
    dora.memberships.create(organisation=organisations[2], role=Role.ADMINISTRATOR)
    User.objects.filter(pk__in=[bob.pk, dora.pk]).update(is_staff=True)
    hooks = [
        issue_hook(
            create_script(
                organisations[number % ORGANISATIONS],
                name=f"script {number}",
                source="return 1",
                author=NOBODY,
            ),
            name=f"hook {number}",
        ).hook
        for number in range(SCRIPTS)
    ]
    insert(made_up_runs(count, hooks), count)


def keep_house() -> None:
    """Runs the maintenance that PostgreSQL does on its own later; SQLite needs statistics too."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def pages() -> dict[str, str]:
    """Maps a page's name to its address."""
    from accounts.models import Organisation
    from core.admin.links import list_of
    from hooks.models import Hook
    from scripts_engine.models import Run

    acme = Organisation.objects.get(name="Acme")
    hook = Hook.objects.filter(script__organisation=acme).select_related("script").latest("name")
    run = Run.objects.filter(script=hook.script).first()
    of_script = {"script__id__exact": hook.script_id}
    yesterday = datetime.now(UTC) - timedelta(days=1)
    days = {
        "started_at_from_0": f"{yesterday - timedelta(days=1):%Y-%m-%d}",
        "started_at_to_0": f"{yesterday:%Y-%m-%d}",
    }
    failed, rare = {"status__exact": "failed"}, {"status__exact": "out-of-memory"}
    return {
        "home": "/admin/",
        "runs": list_of(Run),
        "page 100": list_of(Run, p=100),
        "by id": list_of(Run, q=run.pk if run else ""),
        "by event id or error": list_of(Run, q="nil value"),
        "by event id or error, none": list_of(Run, q="no such text"),
        "every attempt": list_of(Run, attempts="all"),
        "dead letters": list_of(Run, dead_letter="yes"),
        "failed": list_of(Run, **failed),
        "out of memory": list_of(Run, **rare),
        "succeeded": list_of(Run, status__exact="succeeded"),
        "a script": list_of(Run, **of_script),
        "a script, failed": list_of(Run, **of_script, **failed),
        "a script, out of memory": list_of(Run, **of_script, **rare),
        "a hook": list_of(Run, hook__id__exact=hook.pk),
        "a hook, out of memory": list_of(Run, hook__id__exact=hook.pk, **rare),
        "the last hour": list_of(Run, within="1h"),
        "a day": list_of(Run, **days),
        "a day, failed": list_of(Run, **days, **failed),
        "a day, a script, failed": list_of(Run, **days, **of_script, **failed),
        "in the admin": list_of(Run, trigger__exact="admin"),
        "counted on home": list_of(Run, within="24h", source="counted"),
        "drafts": list_of(Run, source="draft"),
        "response 200": list_of(Run, response="200"),
        "response 201": list_of(Run, response="201"),
        "response 504": list_of(Run, response="504"),
        "response 5xx": list_of(Run, response="5xx"),
        "error text": list_of(Run, error="nil value"),
        "error text, none": list_of(Run, error="no such text"),
        "payload text": list_of(Run, payload="tea"),
        "payload text, none": list_of(Run, payload="no such text"),
    }


def plan_of(sql: str) -> str:
    from django.db import connection

    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN (ANALYZE) "
    with connection.cursor() as cursor:
        cursor.execute(explain + sql.replace("%", "%%"), [])
        return "\n".join(f"        {row[-1]}" for row in cursor.fetchall())


def measure(email: str, *, with_plans: bool) -> None:
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from accounts.models import User

    client = Client()
    client.force_login(User.objects.get(email=email))
    print(f"\n{email:<32}{'page ms':>10}{'CPU ms':>10}{'queries ms':>12}{'queries':>9}")
    for name, address in pages().items():
        taken, cpu, in_queries, captured = [], [], [], []
        for _ in range(REPEAT):
            with CaptureQueriesContext(connection) as context:
                started, cpu_started = time.perf_counter(), time.process_time()
                response = client.get(address)
                taken.append((time.perf_counter() - started) * 1000)
                cpu.append((time.process_time() - cpu_started) * 1000)
            assert response.status_code == 200, (address, response.status_code)
            captured = context.captured_queries
            in_queries.append(sum(float(query["time"]) for query in captured) * 1000)
        print(
            f"  {name:<30}{statistics.median(taken):>10.0f}{statistics.median(cpu):>10.0f}"
            f"{statistics.median(in_queries):>12.0f}{len(captured):>9}",
            flush=True,
        )
        for query in captured if with_plans else []:
            if '"scripts_engine_run"' in query["sql"]:
                print(f"      {query['time']} s  {query['sql'][:200]}\n{plan_of(query['sql'])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--plans", action="store_true", help="print the plan of each query too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["MOONHOOK_DATA_DIR"] = directory
        import django
        from django.core.management import call_command

        django.setup()
        from django.conf import settings

        from scripts_engine.models import Run

        settings.STORAGES["staticfiles"]["BACKEND"] = (
            "django.contrib.staticfiles.storage.StaticFilesStorage"
        )
        settings.ALLOWED_HOSTS = ["testserver"]
        call_command("migrate", verbosity=0)
        if not Run.objects.exists():
            fill(options.runs)
        keep_house()
        for email in ("root@example.com", "bob@example.com", "dora@example.com"):
            measure(email, with_plans=options.plans)


if __name__ == "__main__":
    main()
