"""Opening sessions, sending and checking PINs, and a page of runs.

Rate limits are off; otherwise PINs could be measured for one second only.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.comparison.floors.serving import FLOOR, floor
from benchmarks.comparison.floors.session_document import SESSION
from benchmarks.comparison.moonhook import Fixtures, Moonhook, moonhook
from benchmarks.comparison.order import is_right as is_right_order
from benchmarks.comparison.order import order_to
from benchmarks.comparison.requests import Request
from benchmarks.comparison.setting import SQLITE, Setting
from benchmarks.comparison.targets import Target

# Five wrong codes each, then their login attempts are over.
USERS = 500
RUNS_ON_A_PAGE = 50
DEVICE = "3f1d7c52-9e08-4b6a-8a57-1c2e4d6f8091"
SEND_PIN = "mutation($email: String) { sendPinCode(email: $email, sendVia: Email) }"
CHECK_PIN = """
mutation($email: String, $device: String) {
  checkPinCode(email: $email, pin: "000000", device: $device) { result }
}"""
RUNS = """
query($first: Int) {
  runs(first: $first) {
    nodes { id status startedAt durationMs responseStatus script { name } }
    pageInfo { hasNextPage endCursor }
  }
}"""


@contextmanager
def api_calls(setting: Setting) -> Iterator[list[Target]]:
    with ExitStack() as running, setting.databases() as databases:
        start = running.enter_context
        ours = {
            kind: start(
                moonhook(
                    f"Moonhook, {kind}",
                    setting.directory,
                    database_url=url,
                    RATE_LIMITS="off",
                )
            )
            for kind, url in databases.items()
        }
        made = {kind: each.make_fixtures(users=USERS) for kind, each in ours.items()}
        size = made[SQLITE].size
        server = start(floor(FLOOR, "django_project", size, setting.directory))
        look_up = Request(f"{server.url}/session")
        targets = [Target(FLOOR, server, [look_up], lambda answer: answer == SESSION, base=FLOOR)]
        for kind, each in ours.items():
            targets += _calls(kind, each, made[kind])
        yield targets


def _calls(kind: str, moonhook: Moonhook, made: Fixtures) -> Iterator[Target]:
    yield _opening(f"POST /session by a device, {kind}", moonhook, made.device_login)
    # A key has 100 sessions at most: one that opens more ends its own.
    opening_key, reading_key = made.api_key_logins
    yield _opening(f"POST /session by an API key, {kind}", moonhook, opening_key)
    yield _sending_pin(f"sendPinCode, {kind}", moonhook, made.emails_with_code)
    yield _checking_pin(f"checkPinCode, wrong, {kind}", moonhook, made.emails_with_code)
    for _ in range(RUNS_ON_A_PAGE + 1):
        order_to(made.hooks[0]).require(200, is_right_order)
    yield _page_of_runs(f"a page of runs, {kind}", moonhook, reading_key)


def _opening(name: str, moonhook: Moonhook, login: dict[str, str]) -> Target:
    url = f"{moonhook.server.url}/session"
    return Target(
        name,
        moonhook.server,
        [Request.posting(url, login)],
        lambda answer: answer["token"].startswith("mhx_"),
        base=FLOOR,
        status=201,
        refused=Request.posting(url, login | {"password": login["password"][::-1]}),
    )


def _sending_pin(name: str, moonhook: Moonhook, emails: list[str]) -> Target:
    return Target(
        name,
        moonhook.server,
        [_graphql(moonhook, "user", SEND_PIN, {"email": email}) for email in emails],
        lambda answer: answer == {"data": {"sendPinCode": True}},
        base=FLOOR,
    )


def _checking_pin(name: str, moonhook: Moonhook, emails: list[str]) -> Target:
    return Target(
        name,
        moonhook.server,
        [
            _graphql(moonhook, "user", CHECK_PIN, {"email": email, "device": DEVICE})
            for email in emails
        ],
        lambda answer: answer == {"data": {"checkPinCode": {"result": False}}},
        base=FLOOR,
    )


def _page_of_runs(name: str, moonhook: Moonhook, login: dict[str, str]) -> Target:
    variables = {"first": RUNS_ON_A_PAGE}
    token = moonhook.open_session(login)
    return Target(
        name,
        moonhook.server,
        [_graphql(moonhook, "admin", RUNS, variables, Authorization=f"Bearer {token}")],
        lambda answer: len(answer["data"]["runs"]["nodes"]) == RUNS_ON_A_PAGE,
        base=FLOOR,
        refused=_graphql(moonhook, "admin", RUNS, variables, Authorization="Bearer wrong"),
    )


def _graphql(
    moonhook: Moonhook, schema: str, query: str, variables: dict[str, Any], **headers: str
) -> Request:
    """With the media type that reports most failures by the status."""
    return Request.posting(
        f"{moonhook.server.url}/{schema}/graphql",
        {"query": query, "variables": variables},
        Accept="application/graphql-response+json",
        **headers,
    )
