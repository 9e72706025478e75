"""Which addresses scripts may connect to: the public internet, and what the operator allows."""

import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# Networks that ipaddress calls global and that lead back inside, or nowhere a server is.
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "fec0::/10",  # site-local (RFC 3879)
        "5f00::/16",  # segment routing (RFC 9602)
        "2001::/23",  # IETF protocol assignments, Teredo among them (RFC 2928)
    )
)
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))

# A resolver may keep silent for long: it does so in a thread that the run does not wait for.
_resolvers = ThreadPoolExecutor(max_workers=32, thread_name_prefix="resolver")


def resolve(host: str, port: int, timeout_seconds: float) -> list[IPAddress]:
    """The addresses of a name or a literal. Raises ``OSError``, ``TimeoutError`` among them."""
    future = _resolvers.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        answers = future.result(timeout=timeout_seconds)
    except UnicodeError:
        raise OSError("the host name is malformed") from None
    texts = [str(address[0]).partition("%")[0] for *_, address in answers]
    return [ipaddress.ip_address(text) for text in dict.fromkeys(texts)]


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
    if address.is_multicast or address.is_reserved or not address.is_global:
        return False
    return not any(address in network for network in _NOT_PUBLIC)


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
