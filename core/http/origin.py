"""Where a request comes from: its id, its client, and its author, as flows and logs see them."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse

REQUEST_ID_HEADER = "X-Request-Id"
MAX_USER_AGENT_LENGTH = 300
# Some proxies append the port: 192.0.2.1:443, [2001:db8::1]:443.
_WITH_PORT = re.compile(r"(?:\[([^\]]+)\]|([0-9.]+))(?::[0-9]+)?")
_FIND_ACTOR = "_find_actor"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class NamedRequest(Protocol):
    """A request, of Django or not, as log events and problems name it."""

    @property
    def method(self) -> str | None: ...

    @property
    def path(self) -> str: ...


def new_request_id() -> str:
    """32 random hex digits; ids sent by clients are ignored."""
    return secrets.token_hex(16)


class RequestIdMiddleware:
    """Sets ``request.request_id`` and the response header."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.request_id = new_request_id()  # type: ignore[attr-defined]
        response = self._get_response(request)
        response[REQUEST_ID_HEADER] = request.request_id  # type: ignore[attr-defined]
        return response


def request_id_of(request: NamedRequest) -> str:
    return getattr(request, "request_id", "")


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


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated author of a request, or the command that acts.

    ``id`` is public, ``label`` is its name at this moment. ``organisation_id`` is the tenant that
    it belongs to, if it belongs to one; an operator belongs to none and acts in all.
    """

    kind: str
    id: str
    label: str
    organisation_id: str = ""
    is_operator: bool = False


@dataclass(frozen=True, slots=True)
class Origin:
    """The client's address (``""`` if unknown), its User-Agent, the request's id and its actor."""

    client_address: str = ""
    user_agent: str = ""
    request_id: str = ""
    actor: Actor | None = None


NOWHERE = Origin()


def act_as(request: HttpRequest, find_actor: Callable[[], Actor | None]) -> None:
    """Tells ``origin_of`` how to find the request's actor. Endpoints call it once per request."""
    setattr(request, _FIND_ACTOR, find_actor)


def origin_of(request: HttpRequest) -> Origin:
    user_agent = request.headers.get("User-Agent", "")
    find_actor: Callable[[], Actor | None] | None = getattr(request, _FIND_ACTOR, None)
    return Origin(
        client_address=client_address(request),
        user_agent=user_agent[:MAX_USER_AGENT_LENGTH],
        request_id=request_id_of(request),
        actor=None if find_actor is None else find_actor(),
    )


def is_cross_origin(request: HttpRequest) -> bool:
    """Whether another site's page made this unsafe request, by Fetch metadata.

    This is the algorithm of Go's ``http.CrossOriginProtection``. Browsers send ``Sec-Fetch-Site``
    or at least ``Origin``; a client that sends neither is not a browser, so no other site can make
    it send its user's cookie.
    """
    if request.method in SAFE_METHODS:
        return False
    fetch_site = request.META.get("HTTP_SEC_FETCH_SITE")
    if fetch_site is not None:
        return fetch_site not in ("same-origin", "none")
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != request.get_host().lower()
    except ValueError:
        return True
