"""Creates, changes, restores and deletes scripts, each as a release."""

import uuid
from collections.abc import Collection, Iterable
from typing import Any

from django.conf import settings
from django.db.models import TextChoices

from accounts.audit import record
from accounts.models import Organisation
from accounts.rate_limits.limiter import hit
from accounts.rate_limits.windows import a_minute
from accounts.scopes import EVERYTHING, Scopes, require
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from core.names import clean_name
from scripts_engine.flows.source import check_source
from scripts_engine.libraries import pin, resolve
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.recording import releasing
from scripts_engine.releases.script_changes import COLUMNS, about, change_scripts, state_of
from scripts_engine.releases.script_kind import SCRIPTS
from scripts_engine.releases.versions import add_version, pin_together
from scripts_engine.runs.spec import Author

# Fields that ``create_script`` and ``update_script`` set.
FIELDS = frozenset(COLUMNS.values())


def create_script(
    organisation: Organisation,
    *,
    name: str,
    source: str,
    author: Author,
    is_library: bool = False,
    origin: Origin = NOWHERE,
    **fields: object,
) -> Script:
    """Creates a script out of the given ``FIELDS``, and publishes its first version.

    Raises ``ValidationError`` by field, ``SourceError`` or ``LimitExceededError``.
    """
    name = clean_name(name)
    check_source(organisation, source, name)
    new = Script(organisation=organisation, name=name, is_library=is_library)
    with releasing(organisation.pk, origin) as changes:
        changes.watch(SCRIPTS, [new.pk])
        pins = resolve(organisation, source, script=new)
        version = add_version(organisation, new.pk, source, author)
        pin(version, pins)
        state = state_of(new) | _given(fields) | {"name": name, "version": str(version.pk)}
        change_scripts(organisation, {new.pk: state}, origin=origin)
    return _as_saved(new.pk)


def update_script(
    script: Script,
    *,
    author: Author,
    source: str | None = None,
    draft: ScriptVersion | None = None,
    restored: int | None = None,
    expected_revision: int | None = None,
    note: str = "",
    origin: Origin = NOWHERE,
    **changes: object,
) -> Script:
    """Changes the given fields, out of ``FIELDS``, and publishes a given source as a new version.

    A ``draft`` with that source is the version. ``restored`` is the number of the earlier version
    that the source is from. Changes all or nothing. Raises ``ConflictError`` if the script is not
    at ``expected_revision`` or the draft has changed, ``ValidationError`` by field,
    ``SourceError``, ``LimitExceededError``, ``RateLimitedError`` or ``NotFoundError``.
    """
    given = _given(changes)
    if source is not None:
        check_source(script.organisation, source, given.get("name", script.name))
    with releasing(script.organisation_id, origin, note=note) as release:
        release.watch(SCRIPTS, [script.pk])
        locked = existing_script(script.pk)
        locked.check_revision(expected_revision)
        if draft is not None:
            draft.check_unchanged()
        state = state_of(locked) | given
        if source is not None and source != locked.source:
            count_save(locked)
            version = _version_of(release.organisation, locked, source, author, draft)
            state["version"] = str(version.pk)
        states = {locked.pk: state}
        change_scripts(release.organisation, states, origin=origin, restored=restored)
    return _as_saved(script.pk)


def _version_of(
    organisation: Organisation,
    script: Script,
    source: str,
    author: Author,
    draft: ScriptVersion | None,
) -> ScriptVersion:
    """The draft if it has the source, else a new version; with the libraries as they are now."""
    if draft is not None and draft.source == source:
        [version] = pin_together(organisation, [draft])
        return version
    pins = resolve(organisation, source, script=script)
    version = add_version(organisation, script.pk, source, author)
    pin(version, pins)
    return version


def existing_script(script_id: uuid.UUID) -> Script:
    """The script as it is now, with its live version. Raises ``NotFoundError`` if it is deleted."""
    rows = Script.objects.existing().select_related("organisation", "current_version")
    script = rows.filter(pk=script_id).first()
    if script is None:
        raise NotFoundError("There is no such script.")
    return script


def scripts_by_id(
    organisation: Organisation, ids: Collection[uuid.UUID]
) -> dict[uuid.UUID, Script]:
    """The organisation's scripts, even deleted ones, with their live versions."""
    scripts = Script.objects.ever_of_organisation(organisation)
    return scripts.select_related("current_version").in_bulk(list(ids))


def count_save(script: Script) -> None:
    """Counts a save of the script's source. Raises ``RateLimitedError``."""
    hit([a_minute(settings.SCRIPT_SAVES_PER_MINUTE)], "script-save", str(script.pk))


def restore_script_version(
    version: ScriptVersion, *, author: Author, origin: Origin = NOWHERE
) -> Script:
    """Publishes the version's source as a new version; later versions are kept."""
    return update_script(
        version.script,
        author=author,
        source=version.source,
        restored=version.number,
        origin=origin,
    )


def delete_script(script: Script, *, held: Scopes = EVERYTHING, origin: Origin = NOWHERE) -> None:
    """Deletes the script as ``delete_scripts`` does."""
    delete_scripts(script.organisation, [script], held=held, origin=origin)


def delete_scripts(
    organisation: Organisation,
    scripts: Iterable[Script],
    *,
    held: Scopes = EVERYTHING,
    origin: Origin = NOWHERE,
) -> None:
    """Deletes scripts of the organisation, with immediate effect on their hooks and queued runs.

    Their runs and versions stay readable. ``held`` are the actor's scopes in the organisation;
    hooks and schedules, which end with the scripts, need their own. Raises ``MissingScopeError`` or
    ``ValidationError``.
    """
    ids = [script.pk for script in scripts]
    with releasing(organisation.pk, origin) as changes:
        changes.watch_with_dependents(ids)
        require(held, changes.scopes_of_deletion())
        change_scripts(changes.organisation, dict.fromkeys(ids), origin=origin)


def record_about_script(
    kind: TextChoices, script: Script, origin: Origin, reason: str = ""
) -> None:
    record(kind, origin, about=about(script), organisation=script.organisation, reason=reason)


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """The given ``FIELDS`` by the names of a state."""
    given = {key: fields[column] for key, column in COLUMNS.items() if column in fields}
    if "name" in given:
        given["name"] = clean_name(given["name"])
    return given


def _as_saved(script_id: uuid.UUID) -> Script:
    return Script.objects.select_related("organisation", "current_version").get(pk=script_id)
