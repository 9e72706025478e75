"""Turns a request into the event that a script sees."""

from collections.abc import Sequence
from typing import NamedTuple

from core.http.redaction import holds_secret
from hooks.request import Request
from scripts_engine.event import Event
from scripts_engine.senders import Strength

# A browser that follows a link to a hook sends this origin's cookies, including sessions.
_NEVER_SHOWN = frozenset({"cookie"})


class ProvenSender(NamedTuple):
    """A sender that a call has proved, as ``Event`` describes it, and its live secrets."""

    name: str
    strength: str
    event_id: str | None
    signed_content: bytes | None
    secrets: Sequence[str]


def event_of(
    request: Request,
    body: bytes,
    hidden_headers: frozenset[str] = frozenset(),
    sender: ProvenSender | None = None,
) -> Event:
    """The call with its body unchanged.

    The script does not see ``hidden_headers`` (lower case), cookies, or headers that contain a
    secret issued by Moonhook, or that are a secret of the sender.
    """
    hidden = hidden_headers | _NEVER_SHOWN
    secrets = () if sender is None else sender.secrets
    headers = tuple(
        (name, value)
        for name, value in request.headers
        if name.lower() not in hidden and not holds_secret(value) and value not in secrets
    )
    method, query, address = request.method, request.query, request.client_address
    content = (method, request.path, query, body)
    if sender is None:
        return Event(method, query, headers, body, address, content=content)
    signed = sender.signed_content
    return Event(
        method=method,
        query=query,
        headers=headers,
        body=body,
        client_address=address,
        sender=sender.name,
        verified=sender.strength,
        event_id=sender.event_id,
        content=content if signed is None else (method, signed),
        shared_secrets=tuple(secrets) if sender.strength == Strength.SHARED_SECRET else (),
    )
