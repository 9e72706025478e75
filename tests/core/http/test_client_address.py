from typing import Any

import pytest
from django.test import RequestFactory, override_settings

from core.http.origin import client_address, network_of


def address(proxies: int, forwarded: str | None = None, socket: str = "192.0.2.1") -> str:
    extra: dict[str, Any] = {} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded}
    with override_settings(TRUSTED_PROXY_COUNT=proxies):
        return client_address(RequestFactory().get("/", REMOTE_ADDR=socket, **extra))


def test_without_proxies_the_header_is_not_read() -> None:
    assert address(0, "203.0.113.9") == "192.0.2.1"


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "198.51.100.66, 203.0.113.9", "203.0.113.9"),
        (2, "198.51.100.66, 203.0.113.9, 192.0.2.7", "203.0.113.9"),
        (1, " 203.0.113.9 ", "203.0.113.9"),
        (1, "2001:DB8::1", "2001:db8::1"),
        (1, "203.0.113.9:4711", "203.0.113.9"),
        (1, "[2001:DB8::1]:4711", "2001:db8::1"),
        (1, "::ffff:203.0.113.9", "203.0.113.9"),
    ],
)
def test_the_address_is_as_far_from_the_right_as_there_are_proxies(
    proxies: int, forwarded: str, expected: str
) -> None:
    assert address(proxies, forwarded) == expected


def test_the_zone_of_an_address_is_left_out() -> None:
    assert address(0, socket="fe80::1%eth0") == "fe80::1"
    assert address(1, "fe80::2%eth0") == "fe80::2"


@pytest.mark.parametrize("forwarded", [None, "", "nonsense", "203.0.113.9:x"])
def test_a_malformed_header_falls_back_to_the_socket(forwarded: str | None) -> None:
    assert address(1, forwarded) == "192.0.2.1"


def test_a_request_that_bypassed_a_proxy_falls_back_to_the_socket() -> None:
    assert address(2, "203.0.113.9") == "192.0.2.1"


def test_an_ipv4_address_counts_as_one_client() -> None:
    assert network_of("192.0.2.1") == "192.0.2.1"


def test_addresses_of_one_ipv6_64_count_as_one_client() -> None:
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:0:1") == "2001:db8::/64"
    assert network_of("2001:db8:0:1::1") != network_of("2001:db8::1")


def test_clients_without_an_address_count_as_one() -> None:
    assert network_of("") == "unknown"
