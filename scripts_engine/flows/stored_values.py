"""Changes that people make to stored values. The rules are those of ``stored_values.py``."""

import hashlib
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import TextChoices

from accounts.audit import Subject, record
from accounts.models import Organisation
from accounts.revisions import REVISION, revise
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from scripts_engine.audit_kinds import ScriptEvent, ScriptSubject
from scripts_engine.models import StoredValue
from scripts_engine.stored_values import (
    ValueRefused,
    check_expiry,
    check_key,
    check_value,
    only_writer,
    write_value,
)

ABSENT = "absent"
"""The fingerprint of a key without a value."""


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
