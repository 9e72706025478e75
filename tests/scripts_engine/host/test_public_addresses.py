from ipaddress import ip_address, ip_network

import pytest

from scripts_engine.host.public_addresses import is_allowed

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
NOT_PUBLIC = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::1",
    "2001:0:53aa:64c:0:7fff:f5ff:fffe",
    "2001:db8::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "::7f00:1",
    "3fff::1",
    "5f00::1",
    "fe00::1",
    "198.51.100.1",
    "203.0.113.1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_allowed(ip_address(text), [])


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_addresses_that_lead_inside_are_not(text: str) -> None:
    assert not is_allowed(ip_address(text), [])


@pytest.mark.parametrize("text", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"])
def test_the_operator_may_allow_a_network(text: str) -> None:
    assert is_allowed(ip_address(text), [ip_network("10.1.0.0/16")])
    assert not is_allowed(ip_address(text), [ip_network("10.2.0.0/16"), ip_network("fd00::/8")])
