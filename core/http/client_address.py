"""The client of a request: its IP address, and the network that counts as one client."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest

# Some proxies append the port: 192.0.2.1:443, [2001:db8::1]:443.
_WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


def client_address(request: HttpRequest) -> str:
    """The client's IP address in canonical text, or ``""`` where there is none.

    ``TRUSTED_PROXY_COUNT`` proxies each append the address of their peer to ``X-Forwarded-For``,
    so the client's address is that many entries from the right. Entries further left may be forged
    and are ignored. With fewer entries than proxies the request bypassed a proxy, and the socket's
    address is used.
    """
    return client_address_of(request.META)


def client_address_of(environ: Mapping[str, Any]) -> str:
    """The client's IP address from a WSGI environment; see ``client_address``."""
    socket_address = environ.get("REMOTE_ADDR", "")
    proxies = settings.TRUSTED_PROXY_COUNT
    if proxies:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(forwarded) >= proxies:
            return _canonical(forwarded[-proxies]) or _canonical(socket_address)
    return _canonical(socket_address)


@lru_cache(maxsize=4096)
def network_of(client_address: str) -> str:
    """The network that counts as one client: an IPv4 address, or the /64 of an IPv6 address.

    Takes a canonical address; all clients without one count as one.
    """
    if not client_address:
        return "unknown"
    address = ip_address(client_address)
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return str(address)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    text = text.strip()
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2]
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    # Databases hold addresses without a zone (fe80::1%eth0), which names a local interface.
    return str(address).partition("%")[0]
