"""A request that is refused with its body unread leaves the connection as its reply says."""

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.life_cycle.refusals import HOOK_REFUSALS, REFUSALS, Refusal, hook_refusals
from tests.moonhook_server import MoonhookServer

pytestmark = pytest.mark.slow

UNREAD = b"x" * 100_000
# Longer than any that is waited for.
ENDLESS = b"x" * (3 << 20)


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    data = Path(tmp_path_factory.mktemp("data"))
    with MoonhookServer(data, "web", WEB_CONCURRENCY="1").running() as server:
        yield server


@pytest.fixture(scope="module")
def refusals(moonhook: MoonhookServer) -> dict[str, Refusal]:
    return REFUSALS | hook_refusals(moonhook)


def ask(
    connection: http.client.HTTPConnection, refusal: Refusal, body: bytes
) -> http.client.HTTPResponse:
    headers = {"Content-Type": refusal.content_type}
    if refusal.host:
        headers["Host"] = refusal.host
    connection.request(refusal.method, refusal.path, body, headers)
    response = connection.getresponse()
    response.read()
    return response


@pytest.mark.parametrize("reason", [*REFUSALS, *HOOK_REFUSALS])
def test_a_refusal_with_an_unread_body_keeps_the_connection(
    moonhook: MoonhookServer, refusals: dict[str, Refusal], reason: str
) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", moonhook.port, timeout=30)) as connection:
        response = ask(connection, refusals[reason], UNREAD)
        # It would open another connection if the reply said close.
        connection.auto_open = False
        connection.request("GET", "/healthz")
        following = connection.getresponse().status

    assert response.status == refusals[reason].status
    assert following == 200


@pytest.mark.parametrize("reason", [*REFUSALS, *HOOK_REFUSALS])
def test_a_refusal_without_the_whole_body_announces_that_it_ends_the_connection(
    moonhook: MoonhookServer, refusals: dict[str, Refusal], reason: str
) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", moonhook.port, timeout=30)) as connection:
        response = ask(connection, refusals[reason], ENDLESS)

    assert response.status in {refusals[reason].status, 413}
    assert response.will_close
