"""Who is calling: the socket's address, or the one that trusted proxies vouch for."""

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = ""


def client_address(request: HttpRequest) -> str:
    """The client's IP address in canonical text, or ``""`` where there is none.

    ``TRUSTED_PROXY_COUNT`` proxies each append the address they were called from to
    ``X-Forwarded-For``; the client's own is that many from the right. What stands further left
    was written by the client and is never read. With fewer entries than proxies somebody went
    around a proxy, and the socket's address is the truth.
    """
    return client_address_of(request.META)


def client_address_of(environ: Mapping[str, Any]) -> str:
    """The same from a WSGI environment."""
    socket_address = environ.get("REMOTE_ADDR", "")
    proxies = settings.TRUSTED_PROXY_COUNT
    if proxies:
        forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(forwarded) >= proxies:
            return _canonical(forwarded[-proxies]) or _canonical(socket_address)
    return _canonical(socket_address)


# Some proxies append the port: 192.0.2.1:443, [2001:db8::1]:443.
_WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    text = text.strip()
    if match := _WITH_PORT.fullmatch(text):
        text = match[1] or match[2]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return str(address.ipv4_mapped)
    # A zone (fe80::1%eth0) names an interface of one machine; databases hold addresses only.
    return str(address).partition("%")[0]
