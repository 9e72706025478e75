"""Saves, deletes and publishes drafts: versions that are not live, one per script and author.

And what an editor holds, in place of the author's draft.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone

from accounts.models import Organisation
from core.errors import ConflictError, NotFoundError
from core.http.origin import NOWHERE, Origin
from scripts_engine.definition_quota import ROW_BYTES, count_growth, uncount_definitions
from scripts_engine.flows.scripts import count_save, existing_script, update_script
from scripts_engine.flows.source import check_source
from scripts_engine.libraries import has_pins, pin, resolve
from scripts_engine.models import Release, RequiredLibrary, Script, ScriptVersion
from scripts_engine.releases.recording import releasing
from scripts_engine.releases.script_changes import change_scripts, state_of
from scripts_engine.releases.script_kind import SCRIPTS
from scripts_engine.releases.versions import add_version, pin_together, source_digest
from scripts_engine.runs.spec import Author, draft_owner

MAX_PUBLISHED = 200
_REPLACED = ("source", "source_digest", "base_id", "created_at")


def draft_by(script: Script, author: Author) -> ScriptVersion | None:
    """The author's draft of the script."""
    return script.versions.filter(draft_of=draft_owner(author)).first()


def save_draft(
    script: Script,
    source: str,
    *,
    author: Author,
    expected_revision: int | None = None,
    seen_draft: str | None = None,
) -> ScriptVersion:
    """Saves the source as the author's draft of the script, in place of their earlier one.

    An earlier one that has run is kept, because its runs name it. With ``expected_revision``, the
    author has seen what is live, and the draft is based on that. ``seen_draft`` is the SHA-256 of
    the draft that the author saw, empty if there was none. Raises ``ConflictError`` if the script
    is not at ``expected_revision`` or there is another draft than the one seen,
    ``ValidationError`` by field, ``SourceError``, ``LimitExceededError``, ``RateLimitedError`` or
    ``NotFoundError``.
    """
    check_source(script.organisation, source, script.name)
    owner = draft_owner(author)
    with transaction.atomic():
        # Saves and releases of the script come one after the other.
        Script.objects.select_for_update(no_key=True).get(pk=script.pk)
        locked = existing_script(script.pk)
        locked.check_revision(expected_revision)
        pins = resolve(locked.organisation, source, script=locked, draft_of=owner)
        draft = locked.versions.filter(draft_of=owner).first()
        if draft is not None and draft.source == source and has_pins(draft, pins):
            if expected_revision is not None:
                draft.base_id = locked.current_version_id
                draft.save(update_fields=["base"])
            return draft
        if draft is not None and seen_draft is not None and draft.source_digest != seen_draft:
            raise changed_elsewhere(draft)
        count_save(locked)
        base_id = locked.current_version_id
        if draft is not None and expected_revision is None:
            # Its author may not have seen what is live now.
            base_id = draft.base_id
        if draft is None or not _replace_unless_run(draft, source, base_id, locked.organisation):
            locked.versions.filter(draft_of=owner).update(draft_of="")
            draft = add_version(
                locked.organisation, locked.pk, source, author, draft_of=owner, base_id=base_id
            )
        pin(draft, pins)
        return draft


def _replace_unless_run(
    draft: ScriptVersion, source: str, base_id: uuid.UUID | None, organisation: Organisation
) -> bool:
    """Replaces the draft's source and id, unless it has run: a run names the source that it ran.

    With the new id, publishing a draft publishes exactly what its reviewer has read.
    """
    read = draft.pk
    grown = len(source.encode()) - len(draft.source.encode())
    draft.source, draft.source_digest = source, source_digest(source)
    draft.base_id, draft.created_at = base_id, timezone.now()
    changed = {name: getattr(draft, name) for name in _REPLACED}
    renewed = ScriptVersion._meta.pk.get_default()
    if not ScriptVersion.objects.filter(pk=read, has_run=False).update(id=renewed, **changed):
        return False
    RequiredLibrary.objects.filter(version=read).update(version=renewed)
    RequiredLibrary.objects.filter(library_version=read).update(library_version=renewed)
    draft.pk = renewed
    count_growth(organisation, grown)
    return True


def changed_elsewhere(draft: ScriptVersion) -> ConflictError:
    name = f"Your draft of {draft.script}"
    return ConflictError.of_row(name, by=f"{draft.author} in another window", at=draft.created_at)


def delete_draft(draft: ScriptVersion) -> None:
    """Deletes the draft; one that runs or versions name is kept, and is nobody's draft any more.

    Raises ``NotFoundError`` if it is not a draft.
    """
    with transaction.atomic():
        script = Script.objects.select_for_update(no_key=True).get(pk=draft.script_id)
        drafts = ScriptVersion.objects.filter(pk=draft.pk).exclude(draft_of="")
        found = drafts.first()
        if found is None:
            raise NotFoundError("There is no such draft.")
        if _is_deleted(drafts.filter(has_run=False)):
            uncount_definitions(script.organisation_id, ROW_BYTES + len(found.source.encode()))
        else:
            drafts.update(draft_of="")


def _is_deleted(versions: QuerySet[ScriptVersion]) -> bool:
    try:
        with transaction.atomic():
            return bool(versions.delete()[0])
    except ProtectedError:
        # Another version requires it.
        return False


def publish(
    organisation: Organisation,
    versions: Sequence[ScriptVersion],
    *,
    expected_revisions: Mapping[uuid.UUID, int] | None = None,
    note: str = "",
    origin: Origin = NOWHERE,
) -> Release:
    """Makes the versions the live ones of their scripts, as one release.

    Drafts of anybody, which require libraries as they are then, and versions that were live before,
    with the libraries that they had. A draft replaces the version on which it is based, or what is
    live in the revision of the script that is expected, by the script's id. Raises
    ``ConflictError`` if another is live, ``ValidationError`` by field, ``SourceError``,
    ``LimitExceededError`` or ``NotFoundError``.
    """
    _check_choice(versions)
    with releasing(organisation.pk, origin, note=note) as changes:
        ids = [version.script_id for version in versions]
        changes.watch(SCRIPTS, ids)
        scripts = Script.objects.of_organisation(organisation).in_bulk(ids)
        locked = ScriptVersion.objects.filter(script__in=scripts).select_for_update(of=("self",))
        chosen = locked.select_related("script").in_bulk([version.pk for version in versions])
        if len(chosen) < len(versions):
            raise NotFoundError("There is no such version.")
        drafts = [version for version in chosen.values() if version.published_at is None]
        for draft in drafts:
            if (expected := (expected_revisions or {}).get(draft.script_id)) is not None:
                draft.script.check_revision(expected)
            else:
                draft.check_based_on_live()
        past = [version for version in chosen.values() if version.published_at is not None]
        live = [*past, *pin_together(organisation, drafts, among=past)]
        states = {
            version.script_id: state_of(scripts[version.script_id]) | {"version": str(version.pk)}
            for version in live
        }
        change_scripts(changes.organisation, states, origin=origin)
    if changes.release is None:
        raise _invalid("These versions are live already.")
    return changes.release


def _check_choice(versions: Sequence[ScriptVersion]) -> None:
    if not 1 <= len(versions) <= MAX_PUBLISHED:
        raise _invalid(f"Choose 1 to {MAX_PUBLISHED} versions.")
    if Counter(version.script_id for version in versions).most_common(1)[0][1] > 1:
        raise _invalid("Choose one version of each script.")


def _invalid(message: str) -> ValidationError:
    return ValidationError({"versions": ValidationError(message, code="invalid")})


def publish_source(
    script: Script,
    source: str,
    *,
    author: Author,
    seen_draft: str | None = None,
    **changes: Any,
) -> Script:
    """Publishes the source and other ``changes`` of ``update_script``, as one release.

    ``seen_draft`` is the SHA-256 of the author's draft as the editor saved or showed it: the draft
    ends, because the editor holds what became of it. ``None`` leaves a draft alone. Raises what
    ``update_script`` raises, and ``ConflictError`` if there is another draft than the one seen.
    """
    with transaction.atomic():
        draft = draft_by(script, author) if seen_draft is not None else None
        is_news = draft is not None and draft.source not in {source, script.source}
        if draft is not None and is_news and draft.source_digest != seen_draft:
            raise changed_elsewhere(draft)
        saved = update_script(
            script,
            author=author,
            source=None if source == script.source else source,
            draft=draft,
            **changes,
        )
        if draft is not None and (left := draft_by(script, author)) is not None:
            delete_draft(left)
    return saved
