"""Pins versions that go live together to the libraries that they require."""

import uuid
from collections.abc import Collection, Sequence

from accounts.models import Organisation
from scripts_engine.libraries import Pins, pin_all, resolve_together
from scripts_engine.models import RequiredLibrary, ScriptVersion
from scripts_engine.releases.versions import add_version
from scripts_engine.runs.spec import Author


def pin_together(
    organisation: Organisation,
    versions: Sequence[ScriptVersion],
    *,
    among: Collection[ScriptVersion] = (),
) -> list[ScriptVersion]:
    """Pins the versions, which were never live, to one another first; ``among`` go live with them.

    Returns them in their order. A draft that has run and is to require something else stays as it
    is, and the list has a new version with its source. Call it in a release, with the rows of the
    versions locked, each with its ``script``. Raises ``SourceError`` or ``LimitExceededError``.
    """
    going_live = list(versions)
    while True:
        resolved = resolve_together(organisation, going_live, among=among)
        changed = _changed(going_live, resolved)
        fixed = [place for place in changed if going_live[place].has_run]
        if not fixed:
            break
        for place in fixed:
            # What requires the draft is to require its successor, so all is resolved again.
            going_live[place] = _successor(organisation, going_live[place])
    pin_all([(going_live[place], resolved[place]) for place in changed])
    return going_live


def _changed(versions: Sequence[ScriptVersion], resolved: Sequence[Pins]) -> list[int]:
    """The places of those whose pins are not the resolved ones."""
    kept: dict[uuid.UUID, dict[str, uuid.UUID]] = {version.pk: {} for version in versions}
    rows = RequiredLibrary.objects.filter(version__in=list(kept))
    for version_id, name, library_id in rows.values_list("version", "name", "library_version"):
        kept[version_id][name] = library_id
    return [
        place
        for place, (version, pins) in enumerate(zip(versions, resolved, strict=True))
        if kept[version.pk] != {name: library.pk for name, library in pins.items()}
    ]


def _successor(organisation: Organisation, draft: ScriptVersion) -> ScriptVersion:
    ScriptVersion.objects.filter(pk=draft.pk).update(draft_of="")
    author = Author(user=draft.created_by, api_key=draft.created_with)
    successor = add_version(
        organisation, draft.script_id, draft.source, author, base_id=draft.base_id
    )
    successor.script = draft.script
    return successor
