"""Turns a request into the event that a script sees."""

from collections.abc import Iterator
from functools import lru_cache

from django.conf import settings
from django.http import HttpRequest
from django.http.request import HttpHeaders

from core.http.body import BodyIncomplete, BodyTooLarge, read_body
from core.http.client_address import client_address
from core.http.problems import Problem, ProblemCode
from core.http.redaction import holds_secret
from scripts_engine.event import Event

# A browser that follows a link to a hook sends this origin's cookies, including sessions.
_NEVER_SHOWN = frozenset({"cookie"})


def event_of(request: HttpRequest, *, without_headers: frozenset[str] = frozenset()) -> Event:
    """Reads the request, with its body unchanged.

    The script does not see ``without_headers`` (lower case), cookies, or headers that contain a
    secret issued by Moonhook. Raises ``Problem`` if the body is too large or incomplete.
    """
    hidden = without_headers | _NEVER_SHOWN
    try:
        body = read_body(request, settings.HOOK_MAX_BODY_BYTES)
    except BodyTooLarge:
        raise Problem(
            ProblemCode.BODY_TOO_LARGE,
            f"A payload may have at most {settings.HOOK_MAX_BODY_BYTES} bytes.",
        ) from None
    except BodyIncomplete:
        raise Problem(ProblemCode.MALFORMED_BODY, "The body is incomplete or malformed.") from None
    return Event(
        method=request.method or "",
        query=request.META.get("QUERY_STRING", ""),
        headers=tuple(
            (name, value)
            for name, value in _headers(request)
            if name.lower() not in hidden and not holds_secret(value)
        ),
        body=body,
        client_address=client_address(request),
    )


def _headers(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yields what ``request.headers`` has, without parsing every name again for each request."""
    for key, value in request.META.items():
        name = _header_name(key)
        if name is not None:
            yield name, value


@lru_cache(maxsize=1024)
def _header_name(key: str) -> str | None:
    return HttpHeaders.parse_header_name(key)
