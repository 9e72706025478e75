"""GET /session: looking up a token."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.comparison.floors.serving import FLOOR, floor, knox_token
from benchmarks.comparison.floors.session_document import SESSION
from benchmarks.comparison.moonhook import Fixtures, Moonhook
from benchmarks.comparison.requests import Request
from benchmarks.comparison.servers import Server, Size
from benchmarks.comparison.setting import SQLITE, Setting
from benchmarks.comparison.targets import Target

WRONG_TOKEN = "mhx_" + "0" * 46


@contextmanager
def session_look_ups(setting: Setting) -> Iterator[list[Target]]:
    with ExitStack() as running, setting.moonhooks() as ours:
        start = running.enter_context
        made = {kind: each.make_fixtures() for kind, each in ours.items()}
        size = made[SQLITE].size
        targets = [_floor(start(floor(FLOOR, "django_project", size, setting.directory)))]
        with setting.databases() as knox_databases:
            for kind, url in knox_databases.items():
                targets.append(_knox(running, kind, url, size, setting))
            for kind, each in ours.items():
                targets += _moonhook(kind, each, made[kind])
            yield targets


def _floor(server: Server) -> Target:
    return _target(FLOOR, server, {}, SESSION)


def _knox(running: ExitStack, kind: str, database_url: str, size: Size, setting: Setting) -> Target:
    url = database_url or f"sqlite:///{setting.directory / 'knox.sqlite3'}"
    token = knox_token(url)
    name = f"django-rest-knox, {kind}"
    server = running.enter_context(
        floor(name, "knox_project", size, setting.directory, DATABASE_URL=url)
    )
    right, wrong = ({"Authorization": f"Token {each}"} for each in (token, token[::-1]))
    return _target(name, server, right, {"credential": "Token"}, wrong)


def _moonhook(kind: str, moonhook: Moonhook, made: Fixtures) -> list[Target]:
    logins = {"a device": made.device_login, "an API key": made.api_key_logins[0]}
    return [
        _target(
            f"Moonhook, {kind}, session of {owner}",
            moonhook.server,
            _bearer(moonhook.open_session(login)),
            {"credential": login["credential"]},
            _bearer(WRONG_TOKEN),
        )
        for owner, login in logins.items()
    ]


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _target(
    name: str,
    server: Server,
    headers: dict[str, str],
    expected: dict[str, Any],
    wrong_headers: dict[str, str] | None = None,
) -> Target:
    """``expected`` is the required part of the document."""
    url = f"{server.url}/session"
    return Target(
        name,
        server,
        [Request(url, headers=headers)],
        lambda document: expected.items() <= document.items(),
        base=FLOOR,
        refused=None if wrong_headers is None else Request(url, headers=wrong_headers),
    )
