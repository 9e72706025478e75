from ipaddress import ip_address, ip_network

import pytest

from scripts_engine.host.resolver import is_allowed, without_zone

PUBLIC = [
    "93.184.216.34",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "168.63.129.17",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.1",
    "192.31.197.1",
    "198.17.255.255",
    "198.20.0.1",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2620:4f:8001::1",
    "2a00:1450:4001::5efe",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
]
# First and last of each block of IANA's special-purpose registries, and other ways inside.
NOT_PUBLIC = [
    *("0.0.0.0", "0.255.255.255"),
    *("10.0.0.0", "10.255.255.255"),
    *("100.64.0.0", "100.127.255.255"),
    *("127.0.0.0", "127.255.255.255"),
    *("169.254.0.0", "169.254.169.254", "169.254.255.255"),
    *("172.16.0.0", "172.31.255.255"),
    *("192.0.0.0", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.192", "192.0.0.255"),
    *("192.0.2.0", "192.0.2.255"),
    *("192.31.196.0", "192.31.196.255"),
    *("192.52.193.0", "192.52.193.255"),
    *("192.88.99.0", "192.88.99.2", "192.88.99.255"),
    *("192.168.0.0", "192.168.255.255"),
    *("192.175.48.0", "192.175.48.255"),
    *("198.18.0.0", "198.19.255.255"),
    *("198.51.100.0", "198.51.100.255"),
    *("203.0.113.0", "203.0.113.255"),
    *("224.0.0.0", "239.255.255.255"),
    *("240.0.0.0", "255.255.255.254", "255.255.255.255"),
    # The platform of a cloud.
    *("100.100.100.200", "168.63.129.16", "fd00:ec2::254"),
    *("::", "::1", "::2"),
    # IPv4-mapped, -compatible and -translated.
    *("::ffff:0.0.0.0", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
    *("::7f00:1", "::1.1.1.1", "::ffff:0:7f00:1", "::ffff:0:101:101"),
    # NAT64: what it translates to; the prefix for local use as a whole.
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:1", "64:ff9b::c0a8:1"),
    *("64:ff9b:0:1::101:101", "64:ff9b:1::", "64:ff9b:1::a00:1", "64:ff9b:1::101:101"),
    *("64:ff9b:1:0:a:0:100::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "64:ff9b:2::101:101"),
    *("100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"),
    *("200::1", "1fff:ffff::1"),
    # IETF protocol assignments: Teredo, anycast, benchmarking, AMT, AS112, ORCHID, DRIP.
    *("2001::", "2001:0:53aa:64c:0:7fff:f5ff:fffe", "2001:0:101:101::1", "2001:1ff:ffff::"),
    *("2001:1::1", "2001:1::2", "2001:1::3", "2001:2::1", "2001:3::1", "2001:4:112::1"),
    *("2001:10::1", "2001:20::1", "2001:2f:ffff::1", "2001:30::1", "2001:3f:ffff::1"),
    *("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    # 6to4, whatever it carries.
    *("2002::", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:101:101::1", "2002:ffff:ffff::1"),
    *("2620:4f:8000::", "2620:4f:8000:ffff::1"),
    *("3fff::", "3fff:fff:ffff::1"),
    *("4000::1", "5f00::", "5f00:ffff::1", "8000::1", "e000::1", "f000::1"),
    *("fc00::", "fc00::1", "fd20:ce::254", "fdff:ffff::1"),
    *("fe00::1", "fe80::", "fe80::1", "febf:ffff::1"),
    *("fec0::", "fec0::1", "feff:ffff::1"),
    *("ff00::", "ff02::1", "ff0e::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    # ISATAP, under any prefix.
    *("2606:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1", "fe80::5efe:7f00:1"),
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_allowed(ip_address(text), [])


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_internal_addresses_are_not_allowed(text: str) -> None:
    assert not is_allowed(ip_address(text), [])


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.1.2.3", "10.1.0.0/16"),
        ("::ffff:10.1.2.3", "10.1.0.0/16"),
        ("64:ff9b::a01:203", "10.1.0.0/16"),
        ("64:ff9b::a01:203", "64:ff9b::/96"),
        ("64:ff9b:1::a01:203", "64:ff9b:1::/48"),
        ("2002:a01:203::1", "2002:a01::/32"),
        ("fd00::1", "fd00::/8"),
        ("fe80::1", "fe80::/10"),
        ("::1", "::1/128"),
        ("127.0.0.1", "0.0.0.0/0"),
    ],
)
def test_the_operator_may_allow_a_network(text: str, network: str) -> None:
    others = [ip_network("10.2.0.0/16"), ip_network("fd01::/16"), ip_network("2002:b00::/24")]

    assert is_allowed(ip_address(text), [*others, ip_network(network)])
    assert not is_allowed(ip_address(text), others)


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("64:ff9b:1::a01:203", "10.1.0.0/16"),
        ("2002:a01:203::1", "10.1.0.0/16"),
        ("2606:4700::5efe:a01:203", "10.1.0.0/16"),
        ("::10.1.2.3", "10.1.0.0/16"),
        ("::ffff:127.0.0.1", "::/0"),
        ("10.1.2.3", "::ffff:0:0/96"),
    ],
)
def test_an_allowed_network_allows_no_other_that_carries_its_addresses(
    text: str, network: str
) -> None:
    assert not is_allowed(ip_address(text), [ip_network(network)])


def test_a_zone_is_not_part_of_an_address() -> None:
    assert without_zone("fe80::1%eth0") == ip_address("fe80::1")
    assert not is_allowed(without_zone("fe80::1%eth0"), [])
