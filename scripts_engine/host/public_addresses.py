"""Which addresses scripts may connect to: the public internet, and what the operator allows."""

import ipaddress
from collections.abc import Sequence

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA's special-purpose registries (RFC 6890) and what else leads back inside. Written out,
# because what ipaddress calls global differs from one Python to the next.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
        "::/8",
        "100::/8",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/6",
        "ff00::/8",
    )
)
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))

def without_zone(text: str) -> IPAddress:
    """The address of a text that may name a zone: ``fe80::1%eth0``."""
    return ipaddress.ip_address(text.partition("%")[0])


def is_allowed(address: IPAddress, allowed_networks: Sequence[IPNetwork]) -> bool:
    """Public, or in a network that the operator allows.

    An IPv6 address that stands for an IPv4 one is judged by the latter.
    """
    carried = _ipv4_inside(address)
    target = address if carried is None else carried
    if any(target in network for network in allowed_networks):
        return True
    return _is_public(target)


def _is_public(address: IPAddress) -> bool:
    return address.is_global and not any(address in network for network in _NOT_PUBLIC)


def _ipv4_inside(address: IPAddress) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, 6to4 or translated (NAT64)."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if any(address in network for network in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
