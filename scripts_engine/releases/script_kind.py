"""Scripts as a kind of what releases change."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from accounts.models import Organisation
from accounts.scopes import Scope
from core.http.origin import Origin
from scripts_engine.line_diff import unified_diff
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.items import (
    Field,
    Refers,
    a_digest,
    a_name,
    a_number,
    a_whole_number,
    always,
    in_column,
    or_null,
    yes_or_no,
)
from scripts_engine.releases.kinds import Issued, Kind, State
from scripts_engine.releases.script_changes import change_scripts, state_of


class ScriptKind(Kind):
    """A state is ``{name, library, enabled, timeoutSeconds, maxConcurrentRuns, version}``.

    ``version`` is the id of the live version, ``None`` if there is none. It must exist before it is
    put live.
    """

    name = "Script"
    section = "scripts"
    fields = (
        Field(name="name", check=a_name, is_required=True),
        Field(
            name="source",
            state_name="version",
            check=a_digest,
            is_required=True,
            refers_to=Refers.SOURCE,
        ),
        Field(name="library", check=yes_or_no, default=always(False), is_fixed=True),
        # A library starts nothing by itself, and scripts that come with it need it.
        Field(
            name="enabled",
            check=yes_or_no,
            default=lambda item: item.get("library", False),
            is_kept=True,
        ),
        Field(
            name="timeoutSeconds",
            check=in_column(Script, "timeout_seconds", a_number),
            default=always(Script._meta.get_field("timeout_seconds").get_default()),
        ),
        Field(
            name="maxConcurrentRuns",
            check=or_null(in_column(Script, "max_concurrent_runs", a_whole_number)),
        ),
    )

    def states(
        self, organisation: Organisation, ids: Collection[uuid.UUID], *, lock: bool = False
    ) -> dict[uuid.UUID, State]:
        rows = Script.objects.of_organisation(organisation).filter(pk__in=ids).order_by("pk")
        if lock:
            # Not for its key, or hooks and runs of the script would wait for the end of this.
            rows = rows.select_for_update(no_key=True)
        return {row.pk: state_of(row) for row in rows}

    def of_scripts(
        self, organisation: Organisation, script_ids: Collection[uuid.UUID]
    ) -> set[uuid.UUID]:
        rows = Script.objects.of_organisation(organisation).filter(pk__in=script_ids)
        return set(rows.values_list("pk", flat=True))

    def scope_of(self, before: State | None, after: State | None) -> Scope:
        return Scope.PUBLISH

    def put(
        self,
        organisation: Organisation,
        states: Mapping[uuid.UUID, State | None],
        *,
        origin: Origin,
    ) -> Sequence[Issued]:
        change_scripts(organisation, states, origin=origin)
        return ()

    def differences(
        self, organisation: Organisation, changes: Sequence[tuple[State | None, State | None]]
    ) -> list[str]:
        compared = {
            uuid.UUID(version)
            for before, after in changes
            if after is not None and _version_of(before) != _version_of(after)
            for version in (_version_of(before), _version_of(after))
            if version is not None
        }
        versions = ScriptVersion.objects.filter(script__organisation=organisation)
        rows = versions.in_bulk(compared) if compared else {}
        return [
            "Deleted."
            if after is None
            else "\n".join((*_words(before, after), *_source_diff(rows, before, after)))
            for before, after in changes
        ]

    def script_of(self, object_id: uuid.UUID, state: State) -> uuid.UUID:
        return object_id

    def version_of(self, state: State | None) -> uuid.UUID | None:
        version = None if state is None else state["version"]
        return None if version is None else uuid.UUID(version)


SCRIPTS = ScriptKind()


def _words(before: State | None, after: State) -> Iterator[str]:
    if before is None:
        yield "Created as a library." if after["library"] else "Created."
        before = {**after, "enabled": True}
    if before["name"] != after["name"]:
        yield f"Renamed from “{before['name']}” to “{after['name']}”."
    if before["enabled"] != after["enabled"]:
        yield "Enabled." if after["enabled"] else "Disabled."
    for key, title, shown in (
        ("timeoutSeconds", "Time limit", _seconds),
        ("maxConcurrentRuns", "Concurrent runs", _number),
    ):
        if before[key] != after[key]:
            yield f"{title}: {shown(before[key])} → {shown(after[key])}."


def _seconds(value: float) -> str:
    return f"{value:g} s"


def _number(value: int | None) -> str:
    return "unlimited" if value is None else f"{value:,}"


def _version_of(state: State | None) -> str | None:
    return None if state is None else state["version"]


def _source_diff(
    rows: Mapping[uuid.UUID, ScriptVersion], before: State | None, after: State
) -> list[str]:
    ids = [_version_of(before), _version_of(after)]
    if ids[0] == ids[1]:
        return []
    old, new = (None if version is None else rows.get(uuid.UUID(version)) for version in ids)
    return unified_diff(_lines(old), _lines(new), old_name=_named(old), new_name=_named(new))


def _lines(version: Any) -> list[str]:
    return [] if version is None else version.source.splitlines()


def _named(version: Any) -> str:
    return "nothing" if version is None else f"version {version.number}"
