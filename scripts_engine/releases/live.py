"""Which release put a version live, and which one came before a failure."""

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db.models import F

from scripts_engine.models import Release, ReleaseChange

# A failure that begins later than this after a release is hardly due to it.
SUSPECTED_FOR = timedelta(hours=24)


def releases_putting_live(version_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, Release]:
    """The newest release with which each version went live, by the version's id."""
    changes = ReleaseChange.objects.filter(version_after__in=version_ids, kind="Script")
    went_live = changes.exclude(version_before=F("version_after")).select_related("release")
    return {
        change.version_after: change.release
        for change in went_live.order_by("release_id")
        if change.version_after is not None
    }


def release_that_ran(version_id: uuid.UUID | None, at: datetime) -> Release | None:
    """The release with which the version had gone live at that time; ``None`` for drafts."""
    if version_id is None:
        return None
    return Release.objects.putting_live(version_id).filter(at__lte=at).first()


def suspects(failed_since: Mapping[uuid.UUID, Collection[datetime]]) -> "Suspects":
    """The releases that may be to blame, by script and moment of a first failure.

    Each is the last one that changed the script in the day before, unless it was undone.
    """
    moments = [at for each in failed_since.values() for at in each]
    if not moments:
        return {}
    changes = ReleaseChange.objects.filter(
        script_id__in=failed_since,
        release__at__lte=max(moments),
        release__at__gte=min(moments) - SUSPECTED_FOR,
        release__undone_by=None,
    )
    found: Suspects = {}
    for change in changes.select_related("release").order_by("release_id"):
        for at in failed_since[change.script_id]:
            if at - SUSPECTED_FOR <= change.release.at <= at:
                found[change.script_id, at] = change.release
    return found


Suspects = dict[tuple[uuid.UUID, datetime], Release]
