"""Look-ups of host names, bounded by time and by organisation, with a fake name server."""

import socket
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

import pytest
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.host import http
from scripts_engine.host.resolver import Resolver, is_allowed
from tests.eventually import eventually
from tests.factories import reply_of, run_lua

ACME, GLOBEX = "acme", "globex"


class NameServer:
    """Knows every name but those under ``invalid``, and keeps silent about those under ``silent``
    until it is told to speak."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self._speaks = threading.Event()

    def look_up(self, name: bytes, port: int, **_options: Any) -> Any:
        self.asked.append(name)
        if name.endswith(b".silent"):
            self._speaks.wait(30)
        if name.endswith(b".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))] * 2

    def speak(self) -> None:
        self._speaks.set()


@pytest.fixture
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.speak()


@pytest.fixture
def resolver(name_server: NameServer) -> Resolver:
    return Resolver(name_server.look_up, size=8, tenant_share=2)


def resolve(resolver: Resolver, host: str, tenant: str = ACME, seconds: float = 5) -> list[str]:
    found = resolver.resolve(host, 80, tenant=tenant, ends_at=time.monotonic() + seconds)
    return [str(address) for address in found]


def is_unknown(resolver: Resolver, host: str) -> bool:
    try:
        resolve(resolver, host)
    except socket.gaierror:
        return True
    return False


def start_silent_look_ups(resolver: Resolver, count: int) -> None:
    """Look-ups of Acme that last until the name server answers."""
    for number in range(count):
        host = f"{number}.silent"
        threading.Thread(target=resolve, args=[resolver, host, ACME, 60], daemon=True).start()
    eventually(lambda: resolver.busy == min(count, 2))


def test_a_name_is_looked_up(resolver: Resolver, name_server: NameServer) -> None:
    assert resolve(resolver, "shop.example") == ["192.0.2.7"]
    assert name_server.asked == [b"shop.example"]
    assert resolver.busy == 0


def test_a_name_that_is_not_known_is_an_error(resolver: Resolver) -> None:
    with pytest.raises(socket.gaierror):
        resolve(resolver, "shop.invalid")

    assert resolver.busy == 0


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
        ("::ffff:7f00:1", "::ffff:127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
    ],
)
def test_an_address_in_any_spelling_asks_no_name_server(
    resolver: Resolver, name_server: NameServer, host: str, address: str
) -> None:
    # Python writes IPv4-mapped addresses as ::ffff:7f00:1 before 3.13.
    assert resolve(resolver, host) == [str(ip_address(address))]
    assert name_server.asked == []


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "localhost",
     "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:127.0.0.1%1"],
)  # fmt: skip
def test_every_spelling_of_loopback_is_resolved_before_the_check(host: str) -> None:
    addresses = resolve(Resolver(), host)

    assert addresses
    assert not any(is_allowed(ip_address(address), []) for address in addresses)


def test_the_wait_for_a_silent_name_server_ends_before_the_look_up(
    resolver: Resolver, name_server: NameServer
) -> None:
    with pytest.raises(TimeoutError):
        resolve(resolver, "a.silent", seconds=0.5)

    assert resolver.busy == 1
    name_server.speak()
    eventually(lambda: resolver.busy == 0)


def test_the_look_ups_of_one_organisation_leave_threads_to_the_others(
    resolver: Resolver, name_server: NameServer
) -> None:
    start_silent_look_ups(resolver, 80)

    assert resolve(resolver, "shop.example", GLOBEX) == ["192.0.2.7"]
    assert resolve(resolver, "192.0.2.1", ACME) == ["192.0.2.1"]
    assert resolver.busy == 2
    eventually(lambda: len(name_server.asked) == 3)


def test_a_look_up_over_the_share_that_is_given_up_is_never_made(
    resolver: Resolver, name_server: NameServer
) -> None:
    start_silent_look_ups(resolver, 2)
    with pytest.raises(TimeoutError):
        resolve(resolver, "tea.example", seconds=0.05)
    name_server.speak()
    eventually(lambda: resolver.busy == 0)

    assert resolve(resolver, "shop.example") == ["192.0.2.7"]
    assert b"tea.example" not in name_server.asked


def test_a_look_up_over_the_share_waits_until_one_ends(
    resolver: Resolver, name_server: NameServer
) -> None:
    start_silent_look_ups(resolver, 2)
    threading.Timer(0.1, name_server.speak).start()

    assert resolve(resolver, "shop.example", seconds=30) == ["192.0.2.7"]
    eventually(lambda: resolver.busy == 0)


def test_failed_look_ups_release_their_slots(resolver: Resolver, name_server: NameServer) -> None:
    assert [is_unknown(resolver, "shop.invalid") for _ in range(20)] == [True] * 20
    assert resolver.busy == 0
    assert resolve(resolver, "shop.example") == ["192.0.2.7"]


def test_no_look_up_starts_after_the_deadline(resolver: Resolver, name_server: NameServer) -> None:
    with pytest.raises(TimeoutError):
        resolve(resolver, "shop.example", seconds=-1)

    assert name_server.asked == []
    assert resolver.busy == 0


def test_silent_names_of_one_organisation_do_not_block_another(
    acme: Organisation,
    globex: Organisation,
    resolver: Resolver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "resolver", resolver)
    silent = """for i = 1, 20 do
        pcall(http.request, {url = "http://" .. i .. ".silent/", timeout = 0.02}) end"""
    ask = 'local ok, problem = pcall(http.get, "http://{host}/") return problem'
    run_lua(acme, silent)

    with override_settings(HTTP_ALLOWED_NETWORKS=[]):
        by_name = reply_of(run_lua(globex, ask.format(host="shop.example")))
        by_address = reply_of(run_lua(acme, ask.format(host="192.0.2.7")))

    refused = "http.get: {} is not reachable from scripts: its address is not public"
    assert by_name == refused.format("shop.example")
    assert by_address == refused.format("192.0.2.7")
