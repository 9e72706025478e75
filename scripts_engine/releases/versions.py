"""Adds versions of scripts, makes them the live ones, and pins them to libraries."""

import uuid
from collections.abc import Collection, Sequence
from hashlib import sha256

from django.db.models import Max
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.definition_quota import count_definition
from scripts_engine.libraries import Pins, pin_all, resolve_together
from scripts_engine.models import RequiredLibrary, ScriptVersion
from scripts_engine.runs.spec import Author


def source_digest(source: str) -> str:
    """SHA-256 of the source, in hex."""
    return sha256(source.encode()).hexdigest()


def add_version(
    organisation: Organisation,
    script_id: uuid.UUID,
    source: str,
    author: Author,
    *,
    draft_of: str = "",
    base_id: uuid.UUID | None = None,
) -> ScriptVersion:
    """Adds the script's next version, which is not live yet; the script may be created later.

    Call it in a transaction that locks the script. Raises ``LimitExceededError``.
    """
    count_definition(organisation, source)
    numbers = ScriptVersion.objects.filter(script=script_id).order_by("-number")
    return ScriptVersion.objects.create(
        script_id=script_id,
        number=(numbers.values_list("number", flat=True).first() or 0) + 1,
        source=source,
        source_digest=source_digest(source),
        draft_of=draft_of,
        base_id=base_id,
        created_by=author.user,
        created_with=author.api_key,
    )


def mark_published(versions: Sequence[ScriptVersion]) -> None:
    """Ends drafts, and makes the number of each version the highest of its script.

    At most one version of each script, none of which was live before.
    """
    ids = [version.pk for version in versions]
    ScriptVersion.objects.filter(pk__in=ids).update(draft_of="", published_at=timezone.now())
    of_scripts = ScriptVersion.objects.filter(script__in=[each.script_id for each in versions])
    highest = dict(of_scripts.order_by().values_list("script").annotate(Max("number")))
    late = [version for version in versions if version.number < highest[version.script_id]]
    for version in late:
        version.number = highest[version.script_id] + 1
    ScriptVersion.objects.bulk_update(late, ["number"])


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
