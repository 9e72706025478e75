"""Which version of a script is live, since when, by whom; and which release may be to blame."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from core.admin.links import action_of, page_of
from core.admin.times import relative
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.releases.live import releases_putting_live


@dataclass(frozen=True, slots=True)
class Live:
    """``release`` is ``None`` if it is not kept any more."""

    version: ScriptVersion
    release: Release | None

    @property
    def since(self) -> datetime:
        if self.release is not None:
            return self.release.at
        return self.version.published_at or self.version.created_at

    @property
    def by(self) -> str:
        return self.version.author if self.release is None else self.release.actor_label

    @property
    def version_page(self) -> str:
        return page_of(self.version)

    @property
    def release_page(self) -> str:
        return "" if self.release is None else page_of(self.release)


def live_of(script: Script) -> Live | None:
    """``None`` for a script that has only drafts."""
    return lives_of([script]).get(script.pk)


def lives_of(scripts: Iterable[Script]) -> dict[UUID, Live]:
    """By the script's id. Their live versions are loaded."""
    live = {script.pk: script.current_version for script in scripts}
    versions = {script_id: version for script_id, version in live.items() if version is not None}
    releases = releases_putting_live([version.pk for version in versions.values()])
    return {
        script_id: Live(version, releases.get(version.pk))
        for script_id, version in versions.items()
    }


def live_line(live: Live | None) -> SafeString | str:
    """A short line for lists and other pages."""
    if live is None:
        return "None: drafts only"
    return format_html(
        '<span>Version {}, {} <span class="mh-quiet">by {}</span></span>',
        live.version.number,
        relative(live.since),
        live.by,
    )


@dataclass(frozen=True, slots=True)
class Suspect:
    """The release that may be to blame for failures, with a link that undoes it.

    “Release 41, 3 minutes before the first failure, changed this script or its hooks.”
    """

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
