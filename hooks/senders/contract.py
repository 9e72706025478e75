"""The values that the verification of senders takes and returns, and what a signed text is."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

# Longer echoes are refused; so are secrets, ids and lists beyond their limits.
MAX_ECHO_BYTES = 4_096
MAX_SIGNATURES = 8
MAX_SECRET_CHARS = 1_000
MAX_EVENT_ID_CHARS = 500
MAX_POINTERS = 3
MIN_TOLERANCE_SECONDS = 10
MAX_TOLERANCE_SECONDS = 86_400


class Strength(StrEnum):
    """How much a verified call proves."""

    SIGNED = "signed"
    BODY_UNSIGNED = "body-unsigned"
    SHARED_SECRET = "shared-secret"  # noqa: S105 - not a secret
    HANDSHAKE_ONLY = "handshake-only"


class RefusalReason(StrEnum):
    """Why a call ran nothing, as administrators see it; the caller gets one answer for all."""

    WRONG_TOKEN = "WrongToken"  # noqa: S105 - not a secret
    NETWORK_NOT_ALLOWED = "NetworkNotAllowed"
    METHOD_NOT_ALLOWED = "MethodNotAllowed"
    BODY_TOO_LARGE = "BodyTooLarge"
    NO_SECRET_SET = "NoSecretSet"  # noqa: S105 - not a secret
    SIGNATURE_MISSING = "SignatureMissing"
    SIGNATURE_MALFORMED = "SignatureMalformed"
    SIGNATURE_MISMATCH = "SignatureMismatch"
    TIMESTAMP_TOO_OLD = "TimestampTooOld"
    TIMESTAMP_TOO_NEW = "TimestampTooNew"
    HANDSHAKE_REFUSED = "HandshakeRefused"
    RATE_LIMITED = "RateLimited"
    BUSY = "Busy"
    QUEUE_FULL = "QueueFull"


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it was received.

    ``url`` is the full URL as the sender signed it, undecoded; ``query`` is the query string of the
    request itself, which differs from that of ``url`` where a hook has a signed URL of its own.
    Header values are Latin-1 text, and a name may occur twice.
    """

    method: str
    url: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class HmacOptions:
    """How the signature of the sender ``hmac`` is made; ``check_hmac`` checks it.

    ``algorithm`` is sha1, sha256 or sha512, ``encoding`` hex or base64, ``secret_encoding`` text,
    base64 or hex. ``template`` contains {body} exactly once, and may contain {timestamp}, {id},
    {method} and {url}.
    """

    header: str
    algorithm: str = "sha256"
    encoding: str = "hex"
    prefix: str = ""
    template: str = "{body}"
    timestamp_header: str | None = None
    id_header: str | None = None
    secret_encoding: str = "text"  # noqa: S105 - not a secret


@dataclass(frozen=True, slots=True)
class Rules:
    """What one hook demands of its sender.

    ``preset`` is a key of ``PRESETS``, with ``hmac`` set for the preset of that name.
    ``tolerance_seconds`` None: the preset's own. ``allowed_rate`` is in calls per minute.
    """

    preset: str
    hmac: HmacOptions | None = None
    tolerance_seconds: int | None = None
    verify_token: str | None = None
    event_id_pointers: tuple[str, ...] = ()
    is_handshake_expected: bool = False
    allowed_rate: int | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """The call comes from the sender.

    ``event_id`` is None where signed material names none. ``matched_secret`` is the index of the
    secret that matched, None for a sender that has no secret. ``signed_content`` is what equal
    deliveries have in common where one signature holds for several bodies; otherwise None.
    """

    event_id: str | None
    matched_secret: int | None
    strength: Strength
    signed_content: bytes | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Greeting:
    """The platform's answer to a handshake, which runs no script.

    ``stores_secret``: the signing secret that the handshake brought and that has to be stored
    before the answer is sent.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    stores_secret: str | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call proves nothing. ``detail`` is for administrators, for example “412 s old”."""

    reason: RefusalReason
    detail: str


@dataclass(frozen=True, slots=True)
class Hint:
    """A likely cause of a refusal: a code, and a sentence that says what to do."""

    code: str
    sentence: str


class RefusalError(Exception):
    """Ends the examination of a call; ``examine`` turns it into ``Refused``."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refusal(reason, detail)


class InvalidSecretError(ValueError):
    """The value cannot be a secret of its sender. The text never contains the value."""


class InvalidOptionError(ValueError):
    """An option is wrong; ``field`` is its name, and the text never contains its value."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


# --- The signed text ------------------------------------------------------------------------------

# A signature covers the text, not its division into fields. So where bytes can move over a
# boundary, one signature holds for several calls: with other ids, times, URLs or bodies.

PLACEHOLDER = re.compile(r"(\{(?:body|timestamp|id|method|url)\})")
# Of a fixed form: a time within its tolerance has as many characters as any other, and no method
# that runs scripts is the beginning or the end of another.
_FIXED = frozenset({"{timestamp}", "{method}"})


class Boundary(NamedTuple):
    """Two fields that follow each other, and the text between them."""

    left: str
    separator: str
    right: str
    is_before_body: bool

    @property
    def is_open(self) -> bool:
        """Whether nothing tells where the first field ends.

        A signed text is read from both ends to the body, whose extent then is known.
        """
        outer = self.left if self.is_before_body else self.right
        return not self.separator and (outer not in _FIXED or "{id}" in (self.left, self.right))


@lru_cache(maxsize=1024)
def boundaries_of(template: str) -> tuple[Boundary, ...]:
    parts = PLACEHOLDER.split(template)
    fields, literals = parts[1::2], parts[2:-1:2]
    body = fields.index("{body}") if "{body}" in fields else len(fields)
    return tuple(
        Boundary(left, separator, right, place < body)
        for place, (left, separator, right) in enumerate(
            zip(fields, literals, fields[1:], strict=False)
        )
    )
