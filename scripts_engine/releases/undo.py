"""Undoes a release: a new release puts back what it replaced, all or nothing."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.models import Organisation
from accounts.scopes import Scope, Scopes, require
from core.errors import ConflictError, LimitExceededError
from core.http.origin import Origin
from core.names import clean_name
from scripts_engine.models import Release, Script
from scripts_engine.releases.kinds import Kind, Place, State, kinds, place_of
from scripts_engine.releases.recording import Changes, releasing

# A message names no more.
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Item:
    """An object as it is now and as it is to be; ``left`` is how the release left it."""

    kind: Kind
    object_id: uuid.UUID
    name: str
    left: State | None
    now: State | None
    target: State | None

    @property
    def is_done(self) -> bool:
        return self.now == self.target

    @property
    def new_place(self) -> Place | None:
        """The place that it does not have now; ``None`` if it keeps its own, or ends."""
        if self.target is None:
            return None
        place = place_of(self.kind, self.target)
        is_there = self.now is not None and place_of(self.kind, self.now) == place
        return None if is_there else place

    @property
    def has_changed_since(self) -> bool:
        return self.now != self.left

    def __str__(self) -> str:
        return f"“{self.name}” ({self.kind.name.lower()})"


def scopes_of(items: Iterable[Item]) -> set[Scope]:
    """The scopes that it takes to undo these."""
    return {item.kind.scope_of(item.now, item.target) for item in items}


def undo_release(
    release: Release,
    *,
    held: Scopes,
    force: bool = False,
    name: str = "",
    note: str = "",
    origin: Origin,
) -> Release:
    """Puts back what the release replaced, even if it has changed since where ``force`` is set.

    ``name`` is for the object whose own name another one has taken meanwhile. ``held`` are the
    scopes of the actor; each object needs its own. Raises ``MissingScopeError``, ``ConflictError``,
    which names the objects, ``ValidationError`` for the name or the note, or
    ``LimitExceededError``.
    """
    with releasing(release.organisation_id, origin, note=note, undoes=release) as changes:
        items = [item for item in _items(release, changes) if not item.is_done]
        if not items:
            raise ConflictError(f"{release} is undone already.")
        require(held, scopes_of(items))
        if not force:
            _check_unchanged(release, items)
        taken = names_taken(changes.organisation, items)
        if name:
            items = _renamed(items, taken, name)
        elif taken:
            message = f"It cannot be put back. {_told(taken)} Choose another name."
            raise ConflictError(message, field="name")
        _put_back(changes, items, origin)
    if changes.release is None:
        raise ConflictError(f"{release} is undone already.")
    return changes.release


def preview_undo(release: Release) -> list[Item]:
    """What undoing the release would change now; empty if it is undone already."""
    with transaction.atomic():
        changes = Changes(release.organisation, locks=False)
        return [item for item in _items(release, changes) if not item.is_done]


def _items(release: Release, changes: Changes) -> Iterator[Item]:
    """What the release changed, and what would end with the scripts that it created."""
    rows = list(release.changes.all())
    created = {row.object_id for row in rows if row.before is None and row.kind == kinds()[0].name}
    for kind in kinds():
        of_kind = {row.object_id: row for row in rows if row.kind == kind.name}
        others = kind.of_scripts(changes.organisation, created) - of_kind.keys()
        changes.watch(kind, [*of_kind, *others])
        now = changes.before[kind.name]
        for object_id, row in of_kind.items():
            yield Item(kind, object_id, row.name, row.after, now[object_id], row.before)
        for object_id in others:
            if (state := now[object_id]) is not None:
                yield Item(kind, object_id, state["name"], None, state, None)


def names_taken(organisation: Organisation, items: Sequence[Item]) -> list[Item]:
    """Those whose names other objects have, which the release did not change."""
    scripts = Script.objects.of_organisation(organisation).values_list("pk", flat=True)
    found = []
    for kind in kinds():
        own = [item for item in items if item.kind is kind]
        wanted = {item.object_id: item.new_place for item in own if item.new_place is not None}
        if not wanted:
            continue
        others = kind.of_scripts(organisation, set(scripts)) - {item.object_id for item in own}
        places = {place_of(kind, each) for each in kind.states(organisation, others).values()}
        found += [item for item in own if wanted.get(item.object_id) in places]
    return found


def _told(taken: Sequence[Item]) -> str:
    names = [item.target["name"] for item in taken[:_NAMED] if item.target is not None]
    return " ".join(f"There is one named “{name}” already." for name in names)


def _renamed(items: Sequence[Item], taken: Sequence[Item], name: str) -> list[Item]:
    """The items, with the name for the one whose own is taken."""
    if len(taken) != 1:
        message = "Names of several objects are taken: rename the others."
        raise _invalid_name(message if taken else "No name is taken: give none.")
    [item] = taken
    target = replace(item, target=(item.target or {}) | {"name": clean_name(name)})
    return [target if each is item else each for each in items]


def _invalid_name(message: str) -> ValidationError:
    return ValidationError({"name": ValidationError(message, code="invalid")})


def _check_unchanged(release: Release, items: list[Item]) -> None:
    changed = [item for item in items if item.has_changed_since]
    if not changed:
        return
    names = ", ".join(str(item) for item in changed[:_NAMED])
    more = len(changed) - _NAMED
    rest = f" and {more} more" if more > 0 else ""
    raise ConflictError(f"Changed since {str(release).lower()}: {names}{rest}.")


def _put_back(changes: Changes, items: list[Item], origin: Origin) -> None:
    """Deletes dependents before what they depend on, and puts the others back after it."""
    steps = [(kind, True) for kind in reversed(kinds())] + [(kind, False) for kind in kinds()]
    for kind, is_deletion in steps:
        states = {
            item.object_id: item.target
            for item in items
            if item.kind is kind and (item.target is None) is is_deletion
        }
        if not states:
            continue
        try:
            kind.put(changes.organisation, states, origin=origin)
        except LimitExceededError:
            raise
        except ValidationError as error:
            if "name" in error.update_error_dict({}):
                raise _invalid_name(" ".join(error.messages)) from None
            raise ConflictError(f"It cannot be put back. {' '.join(error.messages)}") from None
