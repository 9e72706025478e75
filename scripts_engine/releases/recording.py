"""Records what changes together as one release, in the transaction that changes it."""

import json
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.alerts import alert
from accounts.audit import shown_actor
from accounts.models import Organisation
from accounts.scopes import Scope
from core.http.origin import Origin
from core.plain_text import is_encodable
from scripts_engine.audit_kinds import ScriptAlert
from scripts_engine.definition_quota import ROW_BYTES, count_growth
from scripts_engine.models import Action, Release, ReleaseChange
from scripts_engine.models.release import MAX_NOTE_CHARACTERS
from scripts_engine.releases.kinds import Kind, State, action_of, kinds

# How many changes of a release an alert names.
_TOLD = 20


@dataclass(slots=True)
class Changes:
    """What a transaction changes, by kind and id, with the state before."""

    organisation: Organisation
    """Its row is locked, so releases of an organisation come one after the other."""
    before: dict[str, dict[uuid.UUID, State | None]] = field(default_factory=dict)
    release: Release | None = None
    """Set at the end; ``None`` if nothing has changed."""
    locks: bool = True
    """False only to look at what would change."""

    def watch(self, kind: Kind, ids: Iterable[uuid.UUID]) -> None:
        """Locks the objects and keeps their states. Call it before they change or come to be."""
        known = self.before.setdefault(kind.name, {})
        if new := [object_id for object_id in ids if object_id not in known]:
            states = kind.states(self.organisation, new, lock=self.locks)
            known |= {object_id: states.get(object_id) for object_id in new}

    def watch_with_dependents(self, script_ids: Collection[uuid.UUID]) -> None:
        """Watches the scripts and all that ends with them, before they are deleted."""
        for kind in kinds():
            self.watch(kind, kind.of_scripts(self.organisation, script_ids))

    def scopes_of_deletion(self) -> set[Scope]:
        """The scopes that it takes to delete all that is watched."""
        return {
            kind.scope_of(state, None)
            for kind in kinds()
            for state in self.before.get(kind.name, {}).values()
            if state is not None
        }


@contextmanager
def releasing(
    organisation_id: uuid.UUID,
    origin: Origin,
    *,
    note: str = "",
    undoes: Release | None = None,
) -> Iterator[Changes]:
    """A transaction whose watched changes become one release, or none if nothing has changed.

    Not to be nested: a flow that changes several objects calls what changes one of them without a
    release of its own. Raises ``ValidationError`` for an invalid note, or ``LimitExceededError``.
    """
    _check_note(note)
    with transaction.atomic():
        organisation = Organisation.objects.select_for_update(no_key=True).get(pk=organisation_id)
        changes = Changes(organisation)
        yield changes
        changes.release = _record(changes, origin, note, undoes)


def _check_note(note: str) -> None:
    if len(note) > MAX_NOTE_CHARACTERS or "\0" in note or not is_encodable(note):
        message = f"Enter at most {MAX_NOTE_CHARACTERS} characters."
        raise ValidationError({"note": ValidationError(message, code="invalid")})


def _record(changes: Changes, origin: Origin, note: str, undoes: Release | None) -> Release | None:
    rows = [row for kind in kinds() for row in _rows(changes, kind)]
    if not rows:
        return None
    organisation = changes.organisation
    actor = shown_actor(origin, organisation.pk)
    size = ROW_BYTES + sum(len(json.dumps([row.before, row.after])) for row in rows)
    # What only deletes or disables is never refused, or a full quota would keep it running.
    count_growth(organisation, size, is_limited=not all(map(_is_switched_off, rows)))
    last = Release.objects.of_organisation(organisation).values_list("number", flat=True).first()
    release = Release.objects.create(
        organisation=organisation,
        number=(last or 0) + 1,
        note=note,
        undoes=undoes,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor_label=actor.label,
        bytes=size,
    )
    for place, row in enumerate(rows):
        row.release, row.place = release, place
    ReleaseChange.objects.bulk_create(rows)
    shown = [{"kind": row.kind, "name": row.name, "action": row.action} for row in rows[:_TOLD]]
    alert(
        ScriptAlert.RELEASE_PUBLISHED,
        release,
        number=release.number,
        by=release.actor_label,
        note=note,
        changes=shown,
        changesTotal=len(rows),
    )
    return release


def _is_switched_off(row: ReleaseChange) -> bool:
    return row.after is None or row.after == (row.before or {}) | {"enabled": False}


def _rows(changes: Changes, kind: Kind) -> Iterator[ReleaseChange]:
    before = changes.before.get(kind.name, {})
    after = kind.states(changes.organisation, before) if before else {}
    for object_id, old in before.items():
        new = after.get(object_id)
        action = action_of(old, new)
        state = new or old
        if action is Action.NONE or state is None:
            continue
        yield ReleaseChange(
            kind=kind.name,
            object_id=object_id,
            script_id=kind.script_of(object_id, state),
            name=state["name"],
            action=action,
            before=old,
            after=new,
            version_before=kind.version_of(old),
            version_after=kind.version_of(new),
        )
