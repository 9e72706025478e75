"""Turns a request into the event that a script sees."""

from core.http.redaction import holds_secret
from hooks.request import Request
from scripts_engine.event import Event

# A browser that follows a link to a hook sends this origin's cookies, including sessions.
_NEVER_SHOWN = frozenset({"cookie"})


def event_of(request: Request, *, without_headers: frozenset[str] = frozenset()) -> Event:
    """Reads the request, with its body unchanged.

    The script does not see ``without_headers`` (lower case), cookies, or headers that contain a
    secret issued by Moonhook. Raises ``Problem`` if the body is too large or incomplete.
    """
    hidden = without_headers | _NEVER_SHOWN
    return Event(
        method=request.method,
        query=request.query,
        headers=tuple(
            (name, value)
            for name, value in request.headers()
            if name.lower() not in hidden and not holds_secret(value)
        ),
        body=request.read_body(),
        client_address=request.client_address,
    )
