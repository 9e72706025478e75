"""What is noted of calls: refusals, handshakes, and which credentials are still in use."""

import uuid
from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple

# Kept of every refused call: how the body is to be read.
KEPT_HEADERS = frozenset({"content-type", "content-encoding"})
MAX_HEADER_NAMES = 100


@dataclass(frozen=True, slots=True)
class RefusedCallNote:
    """A refused call. Headers and URL are Latin-1 text, as received."""

    at: datetime
    reason: str
    detail: str
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    hook_id: uuid.UUID | None
    """``None`` if no callable hook has the token."""
    client_address: str
    method: str
    headers: tuple[tuple[str, str], ...]
    """With the values of those that are kept; others are ``""``."""
    query: str
    url: str = ""
    """What the sender signs, if it signs the URL; contains the call token."""
    sender: str = ""
    sender_headers: frozenset[str] = frozenset()
    """The sender's own headers, in lower case: only their values are kept."""
    body: bytes | None = None
    """``None`` if it was not read."""
    call_token: str = ""
    """The token that no hook has. Never stored."""

    @property
    def subject(self) -> uuid.UUID:
        return self.hook_id or self.script_id


class HandshakeNote(NamedTuple):
    hook_id: uuid.UUID
    at: datetime
    sender: str
    client_address: str
    response_status: int


class RefusalCounter(NamedTuple):
    organisation_id: uuid.UUID
    script_id: uuid.UUID
    subject: uuid.UUID
    reason: str
    day: date


class Credential(NamedTuple):
    """``name`` is the digest of a call token, or the id of a signing secret."""

    hook_id: uuid.UUID
    name: str


class Use(NamedTuple):
    times: int
    last_used_at: datetime
    last_used_from: str


@dataclass(slots=True)
class Notes:
    """What has been noted since the last write."""

    refused: list[RefusedCallNote] = field(default_factory=list)
    refusals: Counter[RefusalCounter] = field(default_factory=Counter)
    strangers: list[RefusedCallNote] = field(default_factory=list)
    """Refused calls whose token no hook has."""
    strangers_refusals: Counter[RefusalCounter] = field(default_factory=Counter)
    handshakes: list[HandshakeNote] = field(default_factory=list)
    uses: dict[Credential, Use] = field(default_factory=dict)

    def __bool__(self) -> bool:
        refused = self.refused or self.refusals or self.strangers or self.strangers_refusals
        return bool(refused or self.handshakes or self.uses)
