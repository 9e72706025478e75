"""store: values that outlive a run, shared by the scripts of an organisation.

Writes of an organisation are serialised in this process before they reach the database. There they
would wait for SQLite's only writer, or each with a connection for a row lock on PostgreSQL, and so
hold up other organisations.
"""

import json
import math
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from scripts_engine.host.capabilities import remaining, transaction_until
from scripts_engine.models import StoredValue
from scripts_engine.models.stored import StoredValueQuerySet
from scripts_engine.sandbox import HostCallError
from scripts_engine.stored_values import (
    INTEGER_RANGE,
    MAX_KEY_BYTES,
    MAX_TTL_SECONDS,
    ValueRefused,
    check_key,
    check_value,
    only_writer,
    write_value,
)

# The keys of one answer have 250 KiB at most.
MAX_LISTED_KEYS = 1_000
# How long a write waits for other runs of the organisation; then the script gets an error.
MAX_WAIT_SECONDS = 5.0


class StoreCapability:
    """The store of one organisation."""

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._organisation_id = organisation_id

    def get(self, key: Any, *, deadline: float) -> bytes | None:
        """The value of the key as JSON, or ``None``."""
        row = self._values.live().filter(key=_checked_key(key)).only("value").first()
        return None if row is None else row.value.encode()

    def set(self, key: Any, text: Any, ttl_seconds: Any, *, deadline: float) -> None:
        """Sets the value of the key, given as JSON, optionally with a time to live."""
        key = _checked_key(key)
        value = _checked_value(text)
        expires_at = _expiry(ttl_seconds, "ttl_seconds")
        with self._write_until(deadline):
            write_value(self._organisation_id, key, value, expires_at)

    def set_if_absent(self, key: Any, text: Any, ttl_seconds: Any, *, deadline: float) -> bool:
        """Sets the value of the key unless it has one that has not expired.

        Returns whether it was set: of concurrent calls, exactly one gets ``True``.
        """
        key = _checked_key(key)
        value = _checked_value(text)
        expires_at = _expiry(ttl_seconds, "ttl")
        present = self._values.live().filter(key=key)
        # Most calls find a value, and need not wait for other writers.
        if present.exists():
            return False
        with self._write_until(deadline):
            if present.exists():
                return False
            write_value(self._organisation_id, key, value, expires_at)
        return True

    def delete(self, key: Any, *, deadline: float) -> None:
        key = _checked_key(key)
        with store_turn(self._organisation_id, deadline), transaction_until(deadline):
            self._values.filter(key=key).delete()

    def increment(self, key: Any, by: Any, *, deadline: float) -> int | float:
        """Adds to the number under the key, atomically, starting from 0. Returns the new number."""
        key = _checked_key(key)
        if not _is_number(by):
            raise HostCallError("by must be a number")
        with self._write_until(deadline):
            row = self._values.live().filter(key=key).first()
            number = 0 if row is None else json.loads(row.value)
            if not _is_number(number):
                raise HostCallError("the value under this key is not a number")
            total = number + by
            if not _is_number(total):
                raise HostCallError("the number would be out of range")
            expires_at = None if row is None else row.expires_at
            write_value(self._organisation_id, key, json.dumps(total), expires_at)
        return total

    def list(self, prefix: Any, limit: Any, *, deadline: float) -> list[bytes]:
        """The first keys that begin with the prefix and have not expired, in byte order."""
        if not isinstance(prefix, bytes) or len(prefix) > MAX_KEY_BYTES:
            raise HostCallError(f"the prefix is a string of up to {MAX_KEY_BYTES} bytes")
        if not _is_number(limit) or limit not in range(1, MAX_LISTED_KEYS + 1):
            raise HostCallError(f"the limit must be a whole number from 1 to {MAX_LISTED_KEYS:,}")
        keys = self._values.live().beginning_with(prefix).order_by("key").values_list("key")
        return [bytes(key) for (key,) in keys[: int(limit)]]

    @property
    def _values(self) -> StoredValueQuerySet:
        return StoredValue.objects.of_organisation(self._organisation_id)

    @contextmanager
    def _write_until(self, deadline: float) -> Iterator[None]:
        """Allows one writer per organisation in this process, and in the database."""
        with (
            store_turn(self._organisation_id, deadline),
            transaction_until(deadline),
            only_writer(self._organisation_id),
            _told(),
        ):
            yield


@contextmanager
def _told() -> Iterator[None]:
    """Turns a refusal into an error of the script."""
    try:
        yield
    except ValueRefused as refusal:
        raise HostCallError(str(refusal)) from None


def _checked_key(key: Any) -> bytes:
    with _told():
        return check_key(key)


def _checked_value(text: Any) -> str:
    if not isinstance(text, bytes):
        raise HostCallError("wrong arguments")
    with _told():
        return check_value(text)


def _expiry(ttl_seconds: Any, name: str) -> datetime | None:
    if ttl_seconds is None:
        return None
    if not _is_number(ttl_seconds) or not 0 < ttl_seconds <= MAX_TTL_SECONDS:
        raise HostCallError(f"{name} must be over 0 and at most ten years")
    return timezone.now() + timedelta(seconds=float(ttl_seconds))


def _is_number(value: Any) -> bool:
    """Whether Lua could have sent this number: a 64-bit integer or a finite float."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return value in INTEGER_RANGE
    return isinstance(value, float) and math.isfinite(value)


class _Turn:
    """An organisation's lock; ``users`` counts the runs that hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0


_turns: dict[uuid.UUID, _Turn] = {}
_guard = threading.Lock()


@contextmanager
def store_turn(organisation_id: uuid.UUID, deadline: float) -> Iterator[None]:
    """Holds the organisation's turn to write.

    Raises ``HostCallError`` if other runs of the organisation hold it too long, and
    ``TimeoutError`` at the run's deadline.
    """
    with _guard:
        turn = _turns.setdefault(organisation_id, _Turn())
        turn.users += 1
    try:
        if not turn.lock.acquire(timeout=min(remaining(deadline), MAX_WAIT_SECONDS)):
            remaining(deadline)
            raise HostCallError("busy with other runs of the organisation; try again")
        try:
            yield
        finally:
            turn.lock.release()
    finally:
        with _guard:
            turn.users -= 1
            if not turn.users:
                del _turns[organisation_id]
