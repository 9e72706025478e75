"""UUIDs as ids: parsing, texts, and filters by the time in UUIDs of version 7."""

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q


class KnownId(uuid.UUID):
    """A UUID with cached text forms: a call formats some ids a dozen times. Copies are plain."""

    __slots__ = ("_hex", "_text")
    _hex: str
    _text: str

    def __init__(self, value: uuid.UUID) -> None:
        super().__init__(int=value.int)
        text = str(value)
        # UUIDs refuse assignments.
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_hex", text.replace("-", ""))

    def __str__(self) -> str:
        return self._text

    @property
    def hex(self) -> str:
        return self._hex

    def __reduce__(self) -> tuple[type[uuid.UUID], tuple[str]]:
        return uuid.UUID, (self._text,)


def parse_uuid(text: str) -> uuid.UUID | None:
    """Parse a UUID in any of its spellings; ``None`` if it is malformed."""
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


_PREFIX = re.compile(r"[0-9a-f]{8,31}")
_SHORT = 13


def short_id(key: uuid.UUID) -> str:
    """The first 12 digits, as lists show an id: a UUIDv7's time, to the millisecond."""
    return str(key)[:_SHORT]


def ids_from_prefix(text: str) -> tuple[uuid.UUID, uuid.UUID] | None:
    """The lowest and highest UUID with 8 first digits or more; ``None`` if malformed."""
    digits = text.strip().lower().replace("-", "")
    if (whole := parse_uuid(digits)) is not None:
        return whole, whole
    if not _PREFIX.fullmatch(digits):
        return None
    return uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))


def as_uuid(value: Any) -> uuid.UUID:
    """A UUID as a raw statement returns it: SQLite stores text."""
    return value if isinstance(value, uuid.UUID) else uuid.UUID(value)


def first_id_at(moment: datetime) -> uuid.UUID:
    """The lowest UUID of version 7 with that time."""
    milliseconds = max(0, int(moment.timestamp() * 1000))
    return uuid.UUID(int=(milliseconds << 80) | (7 << 76) | (2 << 62))


def moment_of(key: uuid.UUID) -> datetime:
    """The time in a UUID of version 7, to the millisecond."""
    return datetime.fromtimestamp((key.int >> 80) / 1000, tz=UTC)


# A row's id may be older than its time: it may get its id before it waits for its turn.
LONGEST_WAIT = timedelta(minutes=1)


def since(field: str, moment: datetime) -> Q:
    """Selects rows at the moment or later by their ids, so the time needs no index."""
    return Q(**{f"{field}__gte": moment, "pk__gte": first_id_at(moment - LONGEST_WAIT)})


def before(field: str, moment: datetime, *, inclusive: bool = False) -> Q:
    """Selects rows before the moment, or at the moment when inclusive, by their ids."""
    after: dict[str, Any] = {f"{field}__{'lte' if inclusive else 'lt'}": moment}
    return Q(**after, pk__lt=first_id_at(moment + timedelta(seconds=1)))
