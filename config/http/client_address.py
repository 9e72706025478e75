"""Who is calling: the socket's address, or the one that trusted proxies vouch for."""

import ipaddress
import re

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
    socket_address = request.META.get("REMOTE_ADDR", "")
    proxies = settings.TRUSTED_PROXY_COUNT
    if proxies:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        if len(forwarded) >= proxies:
            return _canonical(forwarded[-proxies]) or _canonical(socket_address)
    return _canonical(socket_address)


# Some proxies append the port: 192.0.2.1:443, [2001:db8::1]:443.
_WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")


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
    return str(address)
