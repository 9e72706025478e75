"""Deletes versions that are too old, and deleted scripts and hooks, unless runs still name them."""

import time
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, IntegerField, OuterRef, Q, QuerySet, Value
from django.utils import timezone

from accounts.models import Organisation
from core.database.batches import PAUSE_FACTOR, delete_in_batches
from scripts_engine.flows.definition_quota import ROW_BYTES, uncount_definitions
from scripts_engine.flows.run_payloads import Octets
from scripts_engine.models import Hook, Run, Script, ScriptVersion

# Rows of one transaction, and of one look for rows, which reads all runs of the organisation.
BATCH = 100
_PAGE = 10_000
# A call that was accepted before the deletion, or with an earlier version, is recorded long before.
_UNUSED_FOR = timedelta(hours=1)


def forget_definitions() -> int:
    """Returns the number of rows deleted.

    Of each script, the newest ``VERSIONS_KEPT_PER_SCRIPT`` versions stay; of a deleted one, none
    but those that runs name, and its current one while it has runs.
    """
    now = timezone.now()
    deleted = Script.objects.filter(deleted_at__lte=now - _UNUSED_FOR)
    unused = deleted.filter(~Exists(Run.objects.filter(script=OuterRef("pk"))))
    # Versions of which none is the current one may all be deleted.
    unused.filter(current_version__isnull=False).update(current_version=None)
    total = 0
    for organisation in Organisation.objects.only("pk").order_by("pk"):
        total += _forget(organisation, _old_versions(organisation, now))
        total += _forget(organisation, _deleted_hooks(organisation, now))
    has_rows = Exists(ScriptVersion.objects.filter(script=OuterRef("pk"))) | Exists(
        Hook.objects.filter(script=OuterRef("pk"))
    )
    return total + delete_in_batches(unused.filter(~has_rows))


def _old_versions(organisation: Organisation, now: datetime) -> "QuerySet[Any]":
    end = now - _UNUSED_FOR
    oldest_kept = F("script__current_version__number") - settings.VERSIONS_KEPT_PER_SCRIPT
    named = Run.objects.in_range_of(organisation.pk).filter(script_version__isnull=False)
    later = ScriptVersion.objects.filter(script=OuterRef("script"), number__gt=OuterRef("number"))
    versions = ScriptVersion.objects.filter(script__organisation=organisation)
    return versions.filter(
        Q(script__deleted_at__lte=end)
        | Q(Exists(later.filter(created_at__lte=end)), number__lte=oldest_kept),
        ~Exists(Script.objects.filter(current_version=OuterRef("pk"))),
        # Not Exists: it would read a script's runs for each version, since these have no index.
        ~Q(pk__in=named.order_by().values("script_version")),
    ).annotate(bytes=Octets("source") + ROW_BYTES)


def _deleted_hooks(organisation: Organisation, now: datetime) -> "QuerySet[Any]":
    end = now - _UNUSED_FOR
    return Hook.objects.filter(
        Q(deleted_at__lte=end) | Q(script__deleted_at__lte=end),
        ~Exists(Run.objects.filter(hook=OuterRef("pk"))),
        script__organisation=organisation,
    ).annotate(bytes=Value(ROW_BYTES, output_field=IntegerField()))


def _forget(organisation: Organisation, rows: "QuerySet[Any]") -> int:
    """Deletes the rows, each with its ``bytes``, in batches. Returns their number."""
    total = 0
    while page := list(rows.order_by("pk").values_list("pk", flat=True)[:_PAGE]):
        before = total
        for start in range(0, len(page), BATCH):
            began = time.monotonic()
            total += _forget_batch(organisation, rows.filter(pk__in=page[start : start + BATCH]))
            time.sleep(PAUSE_FACTOR * (time.monotonic() - began))
        if total == before:
            # Another node deletes them.
            break
    return total


@transaction.atomic
def _forget_batch(organisation: Organisation, rows: "QuerySet[Any]") -> int:
    locked = rows.select_for_update(skip_locked=True, of=("self",))
    sizes = dict(locked.values_list("pk", "bytes"))
    rows.model._default_manager.filter(pk__in=sizes).delete()
    uncount_definitions(organisation.pk, sum(sizes.values()))
    return len(sizes)
