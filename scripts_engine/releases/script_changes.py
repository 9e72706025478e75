"""Brings scripts into given states, any number of them in a fixed number of statements."""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import F, TextField, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from accounts.audit import Happened, Subject, record_all, shown_actor
from accounts.flows.row_limit import check_row_limit
from accounts.models import Organisation
from accounts.revisions import REVISION, revise_all
from core.http.origin import Origin
from core.names import clean_name, name_key, name_taken
from scripts_engine.audit_kinds import ScriptEvent, ScriptSubject
from scripts_engine.models import RequiredLibrary, Script, ScriptVersion
from scripts_engine.releases.kinds import State
from scripts_engine.releases.versions import mark_published
from scripts_engine.runs.retention import script_is_deleted

# Columns by the names of a state; a library stays one.
COLUMNS = {
    "name": "name",
    "enabled": "is_enabled",
    "timeoutSeconds": "timeout_seconds",
    "maxConcurrentRuns": "max_concurrent_runs",
}
_SETTINGS = ("name", "timeoutSeconds", "maxConcurrentRuns")
_SAVED = frozenset(
    {*COLUMNS.values(), "name_key", "current_version", "deleted_at", "updated_at", *REVISION}
)
# A message names no more.
_NAMED = 10
_UNCHECKED = frozenset(field.name for field in Script._meta.fields) - {*COLUMNS.values()}

States = Mapping[uuid.UUID, State | None]


def state_of(script: Script) -> State:
    version_id = script.current_version_id
    return {
        "library": script.is_library,
        **{key: getattr(script, column) for key, column in COLUMNS.items()},
        "version": None if version_id is None else str(version_id),
    }


@dataclass(frozen=True, slots=True)
class _Change:
    """A script in its new state, which is not saved yet."""

    script: Script
    before: State | None
    after: State

    @property
    def is_new(self) -> bool:
        """Whether there is no row yet, not even of a deleted script."""
        return self.script._state.adding

    @property
    def new_version_id(self) -> uuid.UUID | None:
        """The version that goes live."""
        before = None if self.before is None else self.before["version"]
        after = self.after["version"]
        return None if after in (before, None) else uuid.UUID(after)


def change_scripts(
    organisation: Organisation, states: States, *, origin: Origin, restored: int | None = None
) -> None:
    """Creates, changes, brings back and deletes scripts, and publishes their live versions.

    Call it in a release, with the scripts' rows locked. ``restored`` is the number of the version
    whose source the only new version has. Raises ``ValidationError`` by field, whose messages name
    the script if there are several, also for the deletion of a library that live versions require;
    or ``LimitExceededError``.
    """
    rows = Script.objects.ever_of_organisation(organisation).in_bulk(list(states))
    deleted, changes = [], []
    for pk, after in states.items():
        row = rows.get(pk)
        before = None if row is None or row.deleted_at is not None else state_of(row)
        if after == before:
            continue
        if after is None:
            deleted.append(rows[pk])
        else:
            script = row or Script(pk=pk, organisation=organisation, revision=0)
            changes.append(_Change(_put_into(script, after), before, after))
    _delete(organisation, deleted, origin)
    _check_fields(changes)
    _make_room(organisation, changes)
    versions = _versions_of(changes)
    first_time = [version for version in versions.values() if version.published_at is None]
    mark_published(first_time)
    _save(organisation, changes, origin)
    _check_not_required(deleted)
    new_ids = {version.pk for version in first_time}
    events = (_events(change, versions, new_ids, restored) for change in changes)
    record_all(origin, organisation, chain.from_iterable(events))


def _put_into(script: Script, state: State) -> Script:
    if script._state.adding:
        script.is_library = state["library"]
    for key, column in COLUMNS.items():
        setattr(script, column, state[key])
    script.current_version_id = state["version"] and uuid.UUID(state["version"])
    script.deleted_at = None
    return script


def _delete(organisation: Organisation, scripts: Sequence[Script], origin: Origin) -> None:
    if not scripts:
        return
    now, by = timezone.now(), shown_actor(origin, organisation.pk).label
    Script.objects.filter(pk__in=[script.pk for script in scripts]).update(
        deleted_at=now, revision=F("revision") + 1, revised_at=now, revised_by=by
    )
    for script in scripts:
        script_is_deleted(script)
    events = (Happened(ScriptEvent.SCRIPT_DELETED, about(script)) for script in scripts)
    record_all(origin, organisation, events)


def _check_not_required(deleted: Sequence[Script]) -> None:
    """Raises ``ValidationError`` if live versions require one of these libraries."""
    libraries = [script.pk for script in deleted if script.is_library]
    if not libraries:
        return
    rows = RequiredLibrary.objects.filter(
        library_version__script__in=libraries,
        version__script__deleted_at=None,
        version=F("version__script__current_version"),
    )
    names = sorted(set(rows.values_list("version__script__name", flat=True)))
    if names:
        listed = ", ".join(f"“{name}”" for name in names[:_NAMED])
        rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        message = f"A library cannot be deleted while scripts require it: {listed}{rest}."
        raise ValidationError({"script": ValidationError(message, code="required")})


def _check_fields(changes: Sequence[_Change]) -> None:
    for change in changes:
        script = change.script
        try:
            script.name = clean_name(script.name)
            script.clean_fields(exclude=_UNCHECKED)
            if script.is_library != change.after["library"]:
                raise ValidationError({"library": "A script stays a script, a library a library."})
        except ValidationError as error:
            raise error if len(changes) == 1 else _naming(script, error) from None


def _naming(script: Script, error: ValidationError) -> ValidationError:
    messages = error.update_error_dict({})
    return ValidationError(
        {
            field: ValidationError(f"“{script.name}”: {' '.join(ValidationError(each).messages)}")
            for field, each in messages.items()
        }
    )


def _make_room(organisation: Organisation, changes: Sequence[_Change]) -> None:
    """Checks the number of scripts, and frees names that scripts of these pass to each other."""
    scripts = Script.objects.of_organisation(organisation)
    if more := sum(change.before is None for change in changes):
        check_row_limit(
            organisation.pk, scripts, settings.SCRIPTS_PER_ORGANISATION, "scripts", more=more
        )
    keys: dict[str, _Change] = {}
    for change in changes:
        if keys.setdefault(name_key(change.script.name), change) is not change:
            raise name_taken(change.script.name)
    ids = [change.script.pk for change in changes]
    others = scripts.filter(name_key__in=keys).exclude(pk__in=ids)
    if (taken := others.values_list("name_key", flat=True).first()) is not None:
        raise name_taken(keys[taken].script.name)
    passed_on = [
        change.script.pk
        for change in changes
        if change.before is not None
        and keys.get(name_key(change.before["name"]), change) is not change
    ]
    if passed_on:
        # No name has a control character.
        parked = Concat(Value("\x1f"), Cast("pk", TextField()))
        Script.objects.filter(pk__in=passed_on).update(name_key=parked)


def _versions_of(changes: Sequence[_Change]) -> dict[uuid.UUID, ScriptVersion]:
    """The versions that go live, by id."""
    owners = {
        version_id: change.script
        for change in changes
        if (version_id := change.new_version_id) is not None
    }
    found = ScriptVersion.objects.defer("source").in_bulk(list(owners))
    for version_id, script in owners.items():
        version = found.get(version_id)
        if version is None or version.script_id != script.pk:
            message = f"The version of “{script.name}” is not kept any more."
            raise ValidationError({"version": ValidationError(message, code="invalid")})
    return found


def _save(organisation: Organisation, changes: Sequence[_Change], origin: Origin) -> None:
    new = [change.script for change in changes if change.is_new]
    known = [change.script for change in changes if not change.is_new]
    revise_all([*new, *known], organisation.pk, origin)
    # Apart, so that no row of another organisation can be met by its id.
    Script.objects.bulk_create(new)
    Script.objects.bulk_create(
        known, update_conflicts=True, unique_fields=["id"], update_fields=_SAVED
    )


def _events(
    change: _Change,
    versions: Mapping[uuid.UUID, ScriptVersion],
    new_ids: Collection[uuid.UUID],
    restored: int | None,
) -> Iterator[Happened]:
    script, before, after = change.script, change.before, change.after
    subject = about(script)
    if before is None:
        is_first = script.revision == 1
        yield Happened(
            ScriptEvent.SCRIPT_CREATED if is_first else ScriptEvent.SCRIPT_UNDELETED, subject
        )
        return
    changed = [COLUMNS[key] for key in _SETTINGS if before[key] != after[key]]
    if changed:
        yield Happened(ScriptEvent.SCRIPT_CHANGED, subject, ", ".join(changed))
    if before["enabled"] != after["enabled"]:
        is_enabled = after["enabled"]
        yield Happened(
            ScriptEvent.SCRIPT_ENABLED if is_enabled else ScriptEvent.SCRIPT_DISABLED, subject
        )
    version_id = change.new_version_id
    if version_id is None:
        return
    number = versions[version_id].number
    if restored is not None:
        reason = f"version {restored} as version {number}"
        yield Happened(ScriptEvent.SCRIPT_RESTORED, subject, reason)
    elif version_id in new_ids:
        yield Happened(ScriptEvent.SCRIPT_SAVED, subject, f"version {number}")
    else:
        yield Happened(ScriptEvent.SCRIPT_RESTORED, subject, f"version {number}")


def about(script: Script) -> Subject:
    """The script as the subject of an audit event."""
    return Subject(ScriptSubject.SCRIPT, script.pk, script.name)
