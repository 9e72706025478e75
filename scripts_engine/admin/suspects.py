"""The release that may be to blame for failures, in words, with a link that undoes it."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.timesince import timesince

from core.admin.links import action_of, page_of
from scripts_engine.models import Release


@dataclass(frozen=True, slots=True)
class Suspect:
    """“Release 41, 3 minutes before the first failure, changed this script or its hooks.”"""

    number: int
    page: str
    before: str
    undo: str


def suspect_of(release: Release | None, first_failure: datetime) -> Suspect | None:
    if release is None:
        return None
    span = timesince(release.at, first_failure, depth=1)
    return Suspect(
        number=release.number,
        page=page_of(release),
        before="less than a minute" if span.startswith("0") else span,
        undo=action_of(release, "undo"),
    )
