"""Deletes old releases and versions, and deleted scripts with what belongs to them.

Versions stay while a release, a run or another row names them. All are uncounted from the
organisation's storage quota.
"""

import time
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import PROTECT, Exists, F, ForeignKey, OuterRef, Q, QuerySet
from django.utils import timezone

from accounts.models import Organisation
from core.database.batches import PAUSE_FACTOR, delete_in_batches
from scripts_engine.definition_quota import ROW_BYTES, Octets, uncount_definitions
from scripts_engine.models import Release, ReleaseChange, Run, Script, ScriptVersion
from scripts_engine.runs.retention import definitions_of_apps_above

# Rows of one transaction, and of one look for rows, which reads all runs of the organisation.
BATCH = 100
_PAGE = 10_000
# A call that was accepted before the deletion, or with an earlier version, is recorded long before.
_UNUSED_FOR = timedelta(hours=1)


def forget_definitions() -> int:
    """Returns the number of rows deleted.

    The newest ``RELEASES_KEPT`` releases of the last ``RELEASES_KEPT_DAYS`` stay, and those that
    put live what is live. Of each script, the newest ``VERSIONS_KEPT_PER_SCRIPT`` versions stay,
    drafts, and those that something names; of a deleted one, only the latter.
    """
    now = timezone.now()
    deleted = Script.objects.filter(deleted_at__lte=now - _UNUSED_FOR)
    unused = deleted.filter(~Exists(Run.objects.filter(script=OuterRef("pk"))))
    # Versions of which none is the current one may all be deleted.
    unused.filter(current_version__isnull=False).update(current_version=None)
    total, models = 0, {ScriptVersion}
    for organisation in Organisation.objects.only("pk").order_by("pk"):
        # Before versions, which releases name.
        total += forget_rows(organisation, _old_releases(organisation, now))
        total += forget_rows(organisation, _old_versions(organisation, now))
        for deleted_rows in definitions_of_apps_above():
            rows = deleted_rows(organisation, now - _UNUSED_FOR)
            models.add(rows.model)
            total += forget_rows(organisation, rows)
    for model in models:
        unused = unused.filter(~Exists(model._default_manager.filter(script=OuterRef("pk"))))
    return total + delete_in_batches(unused)


def _old_releases(organisation: Organisation, now: datetime) -> "QuerySet[Any]":
    releases = Release.objects.of_organisation(organisation)
    old = Q()
    if days := settings.RELEASES_KEPT_DAYS:
        old |= Q(at__lt=now - timedelta(days=days))
    if most := settings.RELEASES_KEPT:
        last = releases.values_list("number", flat=True).first() or 0
        old |= Q(number__lte=last - most)
    if not old:
        return releases.none()
    live = Script.objects.of_organisation(organisation).filter(current_version__isnull=False)
    put_live = ReleaseChange.objects.filter(
        release=OuterRef("pk"), version_after__in=live.order_by().values("current_version")
    )
    return releases.filter(old, ~Exists(put_live))


def _old_versions(organisation: Organisation, now: datetime) -> "QuerySet[Any]":
    end = now - _UNUSED_FOR
    oldest_kept = F("script__current_version__number") - settings.VERSIONS_KEPT_PER_SCRIPT
    later = ScriptVersion.objects.filter(script=OuterRef("script"), number__gt=OuterRef("number"))
    versions = ScriptVersion.objects.filter(script__organisation=organisation)
    named = Run.objects.in_range_of(organisation.pk).filter(script_version__isnull=False)
    return versions.filter(
        Q(script__deleted_at__lte=end)
        | Q(Exists(later.filter(created_at__lte=end)), number__lte=oldest_kept, draft_of=""),
        *(~Exists(rows) for rows in _rows_that_keep_a_version()),
        # Not Exists: it would read a script's runs for each version, since these have no index.
        ~Q(pk__in=named.order_by().values("script_version")),
    ).annotate(bytes=Octets("source") + ROW_BYTES)


def _rows_that_keep_a_version() -> "list[QuerySet[Any]]":
    """Rows of releases, and of every model, of apps above too, that protects its version."""
    changes = ReleaseChange.objects.all()
    keys = [
        field
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and field.related_model is ScriptVersion
    ]
    return [
        changes.filter(version_before=OuterRef("pk")),
        changes.filter(version_after=OuterRef("pk")),
        *(
            key.model._base_manager.filter(**{key.name: OuterRef("pk")})
            for key in keys
            if key.remote_field.on_delete is PROTECT
        ),
    ]


def forget_rows(organisation: Organisation, rows: "QuerySet[Any]") -> int:
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
