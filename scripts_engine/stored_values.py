"""Stored values: the rules that scripts and people share, and the changes that people make.

The rules are checks, limits, and the one write.
"""

import hashlib
import json
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, NoReturn

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import TextChoices
from django.db.models.functions import Length
from django.utils import timezone

from accounts.audit import Subject, record
from accounts.models import Organisation
from accounts.revisions import REVISION, revise
from core.database.batches import delete_in_batches
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from scripts_engine.audit_kinds import ScriptEvent, ScriptSubject
from scripts_engine.models import StoredValue
from scripts_engine.sandbox import Limits, figure_in_words

MAX_KEY_BYTES = 256
MAX_VALUE_BYTES = 64 * 1024
MAX_KEYS = 10_000
MAX_TTL_SECONDS = 10 * 365 * 86_400
# Of numbers in Lua.
INTEGER_RANGE = range(-(2**63), 2**63)
_MAX_DIGITS = len(str(-(2**63)))
# The deepest value that a script can read.
MAX_DEPTH = Limits().json_depth
ABSENT = "absent"
"""The fingerprint of a key without a value."""


class ValueRefused(Exception):
    """A key, a value or an expiry is not allowed; ``field`` names which."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


def check_key(key: Any) -> bytes:
    if not isinstance(key, bytes) or not 0 < len(key) <= MAX_KEY_BYTES:
        raise ValueRefused("key", f"a key is a string of 1 to {MAX_KEY_BYTES} bytes")
    return key


def check_value(text: bytes) -> str:
    """Checks JSON text in UTF-8, and returns it decoded."""
    if len(text) > MAX_VALUE_BYTES:
        limit = figure_in_words(MAX_VALUE_BYTES)
        raise ValueRefused(
            "value", f"a value may have {limit} as JSON; this one has {len(text):,} bytes"
        )
    try:
        value = text.decode()
        parsed = json.loads(
            value, parse_constant=_refuse_constant, parse_int=_integer, parse_float=_float
        )
        is_too_deep = _depth(parsed) > MAX_DEPTH
    except _OutOfRange:
        raise ValueRefused("value", "a number in the value is out of range") from None
    except RecursionError:
        # How deep the parser goes differs between Python versions.
        is_too_deep = True
    except ValueError:
        raise ValueRefused("value", "the value is not valid JSON") from None
    if is_too_deep:
        raise ValueRefused("value", f"a value may be nested at most {MAX_DEPTH} levels deep")
    return value


def check_expiry(expires_at: datetime | None) -> None:
    if expires_at is None:
        return
    now = timezone.now()
    if not now < expires_at <= now + timedelta(seconds=MAX_TTL_SECONDS):
        raise ValueRefused("expires_at", "the expiry must be in the future, within ten years")


@contextmanager
def only_writer(organisation_id: uuid.UUID) -> Iterator[None]:
    """Makes this transaction the only one that writes values of the organisation.

    Increments, comparisons and the limit of keys are exact because of it. On SQLite, writing
    transactions are serialised in any case.
    """
    if connection.features.has_select_for_update:
        locked = Organisation.objects.select_for_update(no_key=True)
        locked.only("pk").get(pk=organisation_id)
    yield


def write_value(
    organisation_id: uuid.UUID, key: bytes, value: str, expires_at: datetime | None
) -> None:
    """Creates or replaces a value that has been checked. Call it as the only writer."""
    values = StoredValue.objects.of_organisation(organisation_id)
    updated = values.filter(key=key).update(
        value=value, expires_at=expires_at, updated_at=timezone.now()
    )
    if updated:
        return
    if values.count() >= MAX_KEYS:
        values.expired().delete()
        if values.count() >= MAX_KEYS:
            raise ValueRefused("key", f"the organisation has {MAX_KEYS:,} keys already")
    StoredValue.objects.create(
        organisation_id=organisation_id, key=key, value=value, expires_at=expires_at
    )


def _refuse_constant(name: str) -> NoReturn:
    # Python's parser accepts NaN and Infinity, which are not JSON.
    raise ValueError(name)


class _OutOfRange(Exception):
    """Scripts cannot read such a number."""


def _integer(digits: str) -> int:
    # Longer ones are out of range, and slow to convert.
    if len(digits) > _MAX_DIGITS or (number := int(digits)) not in INTEGER_RANGE:
        raise _OutOfRange
    return number


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _OutOfRange
    return number


def _depth(value: Any) -> int:
    """The number of arrays and objects around the innermost value."""
    levels, inner = 0, [value]
    while True:
        holders = [each for each in inner if isinstance(each, list | dict)]
        if not holders:
            return levels
        levels += 1
        inner = [
            item
            for holder in holders
            for item in (holder.values() if isinstance(holder, dict) else holder)
        ]


def forget_expired_values() -> int:
    return delete_in_batches(StoredValue.objects.expired(), row_bytes=Length("value"))


class StoredValueChangedError(Exception):
    """The value is not the one that the person has seen; nothing was written."""

    def __init__(self, current: StoredValue | None) -> None:
        super().__init__("The value has changed.")
        self.current = current
        """``None`` if it was deleted or has expired."""


def fingerprint(stored: StoredValue | None) -> str:
    """Identifies a value and its expiry, to notice that they have changed."""
    if stored is None:
        return ABSENT
    expiry = "" if stored.expires_at is None else stored.expires_at.isoformat()
    return hashlib.sha256(f"{expiry} {stored.value}".encode()).hexdigest()


def set_stored_value(
    organisation: Organisation,
    *,
    key: bytes,
    value: str,
    expires_at: datetime | None,
    seen: str | None = None,
    origin: Origin = NOWHERE,
    expected_revision: int | None = None,
) -> StoredValue:
    """Sets the value, JSON text; with ``seen``, if the key still has the value of that fingerprint.

    Revisions count what people and programs set, fingerprints tell what scripts set. Raises
    ``ValidationError`` by field, ``StoredValueChangedError``, or, with an expected revision,
    ``ConflictError`` for another one and ``NotFoundError`` without a value.
    """
    try:
        checked = check_value(value.encode("utf-8", "surrogatepass"))
        check_expiry(expires_at)
        check_key(key)
        with transaction.atomic(), only_writer(organisation.pk):
            current = _live(organisation, key)
            if current is not None:
                current.check_revision(expected_revision)
            if seen is not None and fingerprint(current) != seen:
                raise StoredValueChangedError(current)
            if current is None and expected_revision is not None:
                raise NotFoundError("There is no such value.")
            write_value(organisation.pk, key, checked, expires_at)
            written = StoredValue.objects.of_organisation(organisation).get(key=key)
            if current is None:
                written.revision = 0
            revise(written, organisation.pk, origin)
            written.save(update_fields=REVISION)
    except ValueRefused as refusal:
        text = str(refusal)
        message = f"{text[0].upper()}{text[1:]}."
        raise ValidationError({refusal.field: ValidationError(message, code="invalid")}) from None
    _record(ScriptEvent.STORED_VALUE_SET, written, origin)
    return written


def delete_stored_value(
    stored: StoredValue, *, origin: Origin = NOWHERE, expected_revision: int | None = None
) -> None:
    """Deletes the value. Raises ``NotFoundError`` if it does not exist, or ``ConflictError``."""
    with transaction.atomic(), only_writer(stored.organisation_id):
        current = StoredValue.objects.filter(pk=stored.pk).first()
        if current is None:
            raise NotFoundError("There is no such value.")
        current.check_revision(expected_revision)
        current.delete()
    _record(ScriptEvent.STORED_VALUE_DELETED, stored, origin)


def _live(organisation: Organisation, key: bytes) -> StoredValue | None:
    return StoredValue.objects.of_organisation(organisation).live().filter(key=key).first()


def _record(kind: TextChoices, stored: StoredValue, origin: Origin) -> None:
    """Records the key, but not the value, which may be personal data."""
    about = Subject(ScriptSubject.STORED_VALUE, stored.pk, str(stored))
    record(kind, origin, about=about, organisation=stored.organisation)
