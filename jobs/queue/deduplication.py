"""Keys under which work is queued, so that the same work is not queued twice.

A key belongs to the first run committed with it. A script must know before its own commit whether
a push is new, so a push reserves its key; other pushes of the key wait until the reserving run
ends. A committed key overrides a reservation: a run that lost its key fails.
"""

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from core.database.compiled_query import column_value
from jobs.models import QueueKey
from jobs.models.queue import MAX_LEASE, key_digest
from jobs.queue.claim import LEASE_MARGIN
from scripts_engine.host.capabilities import EffectRefusedError

KEY_WINDOW = timedelta(hours=24)

# Takes a key that nobody holds (see ``find_holder``), or that is only reserved while this run is
# committed. The statement locks the row before it reads it.
_CLAIM = """
    INSERT INTO {keys} (digest, organisation_id, run_id, expires_at, reserved_by)
    VALUES (%(digest)s, %(organisation)s, %(run)s, %(expires_at)s, %(reserved_by)s)
    ON CONFLICT (digest) DO UPDATE SET
        run_id = excluded.run_id,
        expires_at = excluded.expires_at,
        reserved_by = excluded.reserved_by
    WHERE {keys}.expires_at <= %(now)s
        OR ({keys}.reserved_by IS NOT NULL
            AND (excluded.reserved_by IS NULL OR {keys}.expires_at > %(latest)s))
    RETURNING run_id
"""


class KeyTakenError(EffectRefusedError):
    """Another run was committed first with a key of this one, so nothing may be queued."""

    def __init__(self) -> None:
        super().__init__(
            "queue.push: another run took a key of this one first, so nothing was pushed"
        )


def claim_key(
    organisation_id: uuid.UUID, script_id: uuid.UUID, key: str, run_id: uuid.UUID
) -> uuid.UUID:
    """Takes the key for the run, or returns the run that was queued with it.

    Call it in the transaction that queues the run.
    """
    digest = key_digest(script_id, key)
    if _claim(organisation_id, digest, run_id, timezone.now() + KEY_WINDOW):
        return run_id
    return QueueKey.objects.values_list("run_id", flat=True).get(pk=digest)


def reserve_key(
    organisation_id: uuid.UUID,
    digest: str,
    run_id: uuid.UUID,
    *,
    reserved_by: uuid.UUID,
    run_seconds: float,
) -> bool:
    """Reserves the key until the run in progress must have ended; ``False`` if another has it."""
    ends_at = timezone.now() + timedelta(seconds=run_seconds) + LEASE_MARGIN
    return _claim(organisation_id, digest, run_id, ends_at, reserved_by)


def free_keys(reserved_by: uuid.UUID, digests: Iterable[str]) -> None:
    """Lets others push with the keys that this run has reserved, because it has failed."""
    QueueKey.objects.filter(pk__in=list(digests), reserved_by=reserved_by).delete()


def _claim(
    organisation_id: uuid.UUID,
    digest: str,
    run_id: uuid.UUID,
    expires_at: datetime,
    reserved_by: uuid.UUID | None = None,
) -> bool:
    now = timezone.now()
    values: dict[str, Any] = {
        "digest": digest,
        "organisation": column_value(QueueKey, "organisation", organisation_id),
        "run": column_value(QueueKey, "run_id", run_id),
        "expires_at": column_value(QueueKey, "expires_at", expires_at),
        "reserved_by": column_value(QueueKey, "reserved_by", reserved_by),
        "now": column_value(QueueKey, "expires_at", now),
        "latest": column_value(QueueKey, "expires_at", now + MAX_LEASE),
    }
    keys = connection.ops.quote_name(QueueKey._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM.format(keys=keys), values)
        return cursor.fetchone() is not None
