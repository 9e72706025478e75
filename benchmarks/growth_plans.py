"""Explains PostgreSQL's plan of every frequent query with a million rows.

Run it after growth_fill.py, with the same DATABASE_URL:

    .venv/bin/python benchmarks/growth_plans.py [--plans] [part of a name]

Each entry runs the real code in a transaction that is rolled back; its statements are explained
with EXPLAIN (ANALYZE, BUFFERS), with constraints checked immediately. Prints one line per
statement: duration, pages, indexes, rows filtered out, sorts. ``--plans`` prints the full plans.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts.models import Organisation, User  # noqa: E402
from accounts.rate_limits import windows  # noqa: E402
from accounts.rate_limits.limiter import hit  # noqa: E402
from core.upkeep import all_duties  # noqa: E402
from hooks.edge.wsgi import hook_of_basic_auth, hook_of_url  # noqa: E402
from hooks.models import Hook  # noqa: E402
from scripts_engine.models import Script  # noqa: E402
from scripts_engine.runs.execution import run_script  # noqa: E402
from scripts_engine.runs.spec import Event  # noqa: E402
from tests import factories  # noqa: E402

SLOW_MS = 20.0
READ = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


class Undo(Exception):
    """Raised to roll a transaction back."""


@contextmanager
def rolled_back() -> Iterator[None]:
    try:
        with transaction.atomic():
            yield
            raise Undo
    except Undo:
        pass


class Statement(NamedTuple):
    sql: str
    params: Any


def statements_of(action: Callable[[], object]) -> list[Statement]:
    found: list[Statement] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if str(sql).lstrip().startswith(READ):
            found.append(Statement(str(sql), params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note), rolled_back():
        action()
    return found


def plans_of(action: Callable[[], object]) -> list[tuple[Statement, dict[str, Any]]]:
    plans = []
    statements = statements_of(action)
    with rolled_back(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in statements:
            explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
            # The second time: the first one reads from the disk.
            for _ in range(2 if statement.sql.startswith("SELECT") else 1):
                cursor.execute(explain + statement.sql, statement.params)
                plan = cursor.fetchone()[0][0]
            plans.append((statement, plan))
    return plans


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


def in_short(plan: dict[str, Any]) -> str:
    parts = []
    for node in nodes_of(plan["Plan"]):
        kind, table = node["Node Type"], node.get("Relation Name", "")
        removed = node.get("Rows Removed by Filter", 0) * node.get("Actual Loops", 1)
        if index := node.get("Index Name"):
            parts.append(f"{index}{f' (filtered {removed})' if removed > 100 else ''}")
        elif kind == "Seq Scan":
            parts.append(f"SEQ SCAN {table} ({node['Actual Rows']} + {removed} rows)")
        elif kind == "Sort" and node["Actual Rows"] > 100:
            parts.append(f"sort {node['Actual Rows']}")
    return ", ".join(dict.fromkeys(parts))


def show(name: str, action: Callable[[], object], *, in_full: bool) -> None:
    plans = plans_of(action)
    total = sum(plan["Planning Time"] + plan["Execution Time"] for _, plan in plans)
    print(f"\n{name}: {len(plans)} statements, {total:.2f} ms")
    for statement, plan in plans:
        took = plan["Execution Time"]
        pages = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
        mark = "SLOW" if took > SLOW_MS else "    "
        what = " ".join(statement.sql.replace('"', "").split())
        verb, _, rest = what.partition(" ")
        table = rest.partition("FROM ")[2] if verb == "SELECT" else rest
        if "COUNT(*)" in what:
            verb = "COUNT"
        print(
            f"  {mark} {took:9.3f} ms {pages:7} pages  {verb} {table.split(' ')[0]:30.30}"
            f"  {in_short(plan)}"
        )
        if in_full:
            print(statement.sql)
            with connection.cursor() as cursor, rolled_back():
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS) " + statement.sql, statement.params)
                print("\n".join(line for (line,) in cursor.fetchall()))


def entries() -> dict[str, Callable[[], object]]:
    """Maps names to operations of the organisation that has half of everything."""
    giant = Organisation.objects.get(name="Organisation 1")
    small = Organisation.objects.get(name="Organisation 77")
    script = Script.objects.get(name="Script 10")
    hook, call_token = factories.make_hook(script)
    key = factories.make_api_key(giant)
    login = factories.api_key_login(key)
    token = factories.open_session(login)
    small_token = factories.open_session(factories.api_key_login(factories.make_api_key(small)))
    user = User.objects.get(email="user10@example.com")
    device = factories.make_device_token(user)
    busy_hook = Hook.objects.get(name="Hook 10")
    week_ago = (timezone.now() - timedelta(days=7)).isoformat()
    bearer = f"Bearer {token}"
    client = Client(SERVER_NAME="127.0.0.1")

    def graphql(query: str, token: str = token) -> object:
        answer = factories.admin_graphql(query, token)
        assert not answer.errors, answer.errors
        return answer

    def lists(field: str, arguments: str = "", of: str = token) -> dict[str, Callable[[], object]]:
        braces = f"({arguments})" if arguments else ""
        label = f"{field}{braces}" + ("" if of == token else " of a small organisation")
        return {
            label: lambda: graphql(f"{{ {field}{braces} {{ nodes {{ __typename }} }} }}", of),
            f"{label} totalCount": lambda: graphql(f"{{ {field}{braces} {{ totalCount }} }}", of),
        }

    def run_insert() -> None:
        event = Event(method="POST", query="", headers=(), body=b"{}", client_address="127.0.0.1")
        run_script(factories.spec_of(hook), event)

    def open_at_the_cap() -> None:
        factories.open_session(factories.api_key_login(key))

    basic = factories.basic(hook.pk, call_token)["Authorization"]
    return {
        "hook call by URL": lambda: hook_of_url(str(giant.pk), str(script.pk), call_token),
        "hook call by Basic": lambda: hook_of_basic_auth(str(giant.pk), str(script.pk), basic),
        "hook call, wrong token": lambda: hook_of_url(
            str(giant.pk), str(script.pk), call_token[:-1] + "0"
        ),
        "the run's INSERT": run_insert,
        "GET /session": lambda: client.get("/session", headers={"Authorization": bearer}),
        "POST /session by key": open_at_the_cap,
        "POST /session by device": lambda: factories.open_session(factories.device_login(device)),
        "rate limit hit": lambda: hit(windows.PIN_SENDS_OF_ADDRESS, "pin-send-to", "x@example.com"),
        **lists("runs"),
        **lists("runs", of=small_token),
        **lists("runs", f'script: "{script.pk}"'),
        **lists("runs", f'hook: "{busy_hook.pk}"'),
        **lists("runs", "status: Failed"),
        **lists("runs", "status: TimedOut"),
        **lists("runs", f'since: "{week_ago}"'),
        **lists("runs", f'until: "{week_ago}"'),
        **lists("sessions"),
        **lists("sessions", of=small_token),
        **lists("sessions", f'user: "{user.pk}"'),
        **lists("hooks"),
        **lists("hooks", of=small_token),
        **lists("hooks", f'script: "{script.pk}"'),
        **lists("scripts"),
        **lists("scripts", 'name: "ipt 77"'),
        **lists("users"),
        **lists("users", of=small_token),
        **lists("users", 'email: "user10@example.com"'),
        **lists("devices"),
        **lists("devices", f'user: "{user.pk}"'),
        **lists("apiKeys"),
        **lists("authEvents"),
        **lists("authEvents", 'kind: "session.refused"'),
        **lists("authEvents", f'user: "{user.pk}"'),
        **{f"upkeep: {duty.__name__}": first_batch_of(duty) for duty in all_duties()},
    }


class EnoughError(Exception):
    """Raised after the first batch; the others are like it."""


def first_batch_of(duty: Callable[[], int]) -> Callable[[], object]:
    def do() -> None:
        deletes = 0

        def stop(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            nonlocal deletes
            deletes += str(sql).startswith("DELETE")
            if deletes and str(sql).startswith("SELECT"):
                raise EnoughError
            return execute(sql, params, many, context)

        try:
            with connection.execute_wrapper(stop):
                duty()
        except EnoughError:
            pass

    return do


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", action="store_true")
    parser.add_argument("part", nargs="?", default="")
    arguments = parser.parse_args()
    settings.ALLOWED_HOSTS.append("testserver")
    settings.IS_RATE_LIMITED = True
    connection.ensure_connection()
    connection.connection.max_wait_seconds = None
    with rolled_back():
        for name, action in entries().items():
            if arguments.part in name:
                show(name, action, in_full=arguments.plans)


if __name__ == "__main__":
    main()
