"""Counts versions, hooks and releases against the organisation's storage quota.

Each takes the bytes of its content and a fixed number for its row, so that neither many empty
versions nor hooks that are created and deleted in turn escape the quota. The count changes in the
transaction that adds or deletes the rows, so it is exact.
"""

import uuid
from typing import Any

from django.db.models import F, Func, IntegerField
from django.db.models.functions import Greatest

from accounts.models import Organisation
from core.errors import LimitExceededError
from scripts_engine.models import RunStorage

# More than a row, its index entries and its audit event take.
ROW_BYTES = 1024


class Octets(Func):
    """The length of a text in bytes of UTF-8; ``Length`` counts characters."""

    function = "octet_length"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite has ``octet_length`` only since 3.43."""
        template = "length(CAST(%(expressions)s AS BLOB))"
        return self.as_sql(compiler, connection, template=template, **context)


def count_definition(organisation: Organisation, source: str = "") -> None:
    """Counts a version or a hook. Raises ``LimitExceededError`` if it does not fit the quota.

    Call it in the transaction that adds the row. Payloads of runs make room for it: they are
    removed when the next run is recorded.
    """
    count_growth(organisation, ROW_BYTES + len(source.encode()))


def count_growth(organisation: Organisation, size: int, *, is_limited: bool = True) -> None:
    """Counts so many bytes more, or less if negative, even beyond the quota if not ``is_limited``.

    Otherwise like ``count_definition``.
    """
    if size <= 0:
        uncount_definitions(organisation.pk, -size)
        return
    limit = organisation.run_bytes_limit if is_limited else None
    if _add(organisation.pk, size, limit):
        return
    missing = [RunStorage(organisation_id=organisation.pk)]
    RunStorage.objects.bulk_create(missing, ignore_conflicts=True)
    if not _add(organisation.pk, size, limit):
        raise LimitExceededError(
            f"The scripts and hooks of the organisation use up its storage quota of {limit:,} "
            "bytes, with their earlier versions and releases."
        )


def _add(organisation_id: uuid.UUID, size: int, limit: int | None) -> bool:
    storage = RunStorage.objects.filter(pk=organisation_id)
    if limit is not None:
        storage = storage.filter(definition_bytes__lte=limit - size)
    return bool(storage.update(definition_bytes=F("definition_bytes") + size))


def uncount_definitions(organisation_id: uuid.UUID, freed_bytes: int) -> None:
    """Call it in the transaction that deletes the rows."""
    left = Greatest(0, F("definition_bytes") - freed_bytes)
    RunStorage.objects.filter(pk=organisation_id).update(definition_bytes=left)
