"""The same calls on PostgreSQL with few and with many rows."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.comparison import postgresql
from benchmarks.comparison.moonhook import Moonhook, moonhook
from benchmarks.comparison.order import is_right, order_to
from benchmarks.comparison.progress import say
from benchmarks.comparison.requests import Request
from benchmarks.comparison.setting import Setting
from benchmarks.comparison.targets import Target

LOOK_UP = "GET /session"


@contextmanager
def growth(setting: Setting) -> Iterator[list[Target]]:
    if not setting.postgresql_url:
        sys.exit("growth needs PostgreSQL.")
    with ExitStack() as running:
        targets: list[Target] = []
        for rows in setting.rows:
            url = running.enter_context(postgresql.empty_database(setting.postgresql_url))
            name = f"Moonhook, {rows:,} rows"
            ours = running.enter_context(moonhook(name, setting.directory, database_url=url))
            targets += _calls(ours, rows, fewest=setting.rows[0])
        for target in targets:
            if target.name.startswith(LOOK_UP):
                _use(target)
        # Those that are compared stand, and are driven, beside each other.
        yield sorted(targets, key=lambda target: target.base)


def _calls(moonhook: Moonhook, rows: int, *, fewest: int) -> Iterator[Target]:
    made = moonhook.printed_by("benchmarks.comparison.grown", rows)
    url = f"{moonhook.server.url}/session"
    bearers = [{"Authorization": f"Bearer {token}"} for token in made["sessions"]]
    yield Target(
        f"hook call, {rows:,} rows",
        moonhook.server,
        [order_to(hook) for hook in made["hooks"]],
        is_right,
        base=f"hook call, {fewest:,} rows",
    )
    yield Target(
        f"{LOOK_UP}, {rows:,} rows",
        moonhook.server,
        [Request(url, headers=bearer) for bearer in bearers],
        lambda answer: answer["status"] == "active",
        base=f"{LOOK_UP}, {fewest:,} rows",
    )
    yield Target(
        f"POST /session, {rows:,} rows",
        moonhook.server,
        [Request.posting(url, login) for login in made["logins"]],
        lambda answer: answer["status"] == "active",
        base=f"POST /session, {fewest:,} rows",
        status=201,
    )


def _use(target: Target) -> None:
    """Uses each session once, because a use is recorded every five minutes."""
    say(f"{target.name}: {len(target.requests):,} sessions are used")
    for request in target.requests:
        request.require(target.status, target.is_right)
