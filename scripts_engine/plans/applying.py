"""Applies a plan: exactly what it says, as one release, or nothing."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import Organisation
from accounts.scopes import Scope, Scopes, require
from core.errors import ConflictError, LimitExceededError, NotFoundError
from core.http.origin import Origin
from scripts_engine.models import Action, Plan, Release, Script, ScriptVersion
from scripts_engine.plans.planning import PlannedChange, changes_of
from scripts_engine.plans.versions import (
    PlannedVersion,
    save_planned_drafts,
    save_planned_versions,
)
from scripts_engine.releases.kinds import Issued, Kind, State, digest_of, kinds
from scripts_engine.releases.recording import Changes, releasing
from scripts_engine.runs.spec import Author

# A message names no more objects.
_NAMED = 10


class Applied(NamedTuple):
    release: Release | None
    """``None`` if nothing changed, or only drafts were saved."""
    issued: Sequence[Issued]
    """The call tokens of new hooks, shown once."""


def apply_plan(
    organisation: Organisation,
    plan_id: uuid.UUID | None,
    *,
    held: Scopes,
    author: Author,
    origin: Origin,
    note: str = "",
    publish: bool = True,
) -> Applied:
    """Brings about what the plan says. ``publish=False``: saves its sources as the author's drafts.

    ``held`` are the scopes of the author; each change needs its own. Raises ``NotFoundError`` for a
    plan that is unknown, expired or of another organisation, ``ConflictError`` for one that was
    applied, or where something that it touches has moved since, ``ValidationError`` by field,
    ``MissingScopeError`` or ``LimitExceededError``.
    """
    with releasing(organisation.pk, origin, note=note) as changes:
        plan = _locked(organisation, plan_id)
        planned = _Planned(changes, changes_of(plan))
        planned.check_unmoved()
        if publish:
            require(held, planned.scopes())
            issued = planned.put(author, origin)
        else:
            require(held, planned.scopes_of_drafts())
            issued = planned.save_drafts(author, origin)
        Plan.objects.filter(pk=plan.pk).update(applied_at=timezone.now())
    return Applied(changes.release, issued)


def _locked(organisation: Organisation, plan_id: uuid.UUID | None) -> Plan:
    plans = Plan.objects.of_organisation(organisation).unexpired().select_for_update()
    plan = None if plan_id is None else plans.filter(pk=plan_id).first()
    if plan is None:
        raise NotFoundError("There is no such plan. Plans live for an hour.")
    if plan.applied_at is not None:
        raise ConflictError("This plan was applied already. Make another.")
    if plan.problems:
        message = "This plan has problems. Solve them, and make another."
        raise ValidationError({"id": ValidationError(message, code="invalid")})
    return plan


@dataclass(frozen=True, slots=True)
class _Change:
    kind: Kind
    id: uuid.UUID
    planned: PlannedChange
    before: State | None

    @property
    def after(self) -> State | None:
        return self.planned.after

    @property
    def is_deletion(self) -> bool:
        return self.planned.action == Action.DELETE


class _Planned:
    """A plan's changes over the objects as they are now, which are locked."""

    def __init__(self, changes: Changes, planned: Sequence[PlannedChange]) -> None:
        self._organisation = changes.organisation
        self._changes: list[_Change] = []
        for kind in kinds():
            of_kind = {uuid.UUID(each.id): each for each in planned if each.kind == kind.name}
            changes.watch(kind, of_kind)
            before = changes.before[kind.name]
            self._changes += [_Change(kind, pk, of_kind[pk], before[pk]) for pk in of_kind]

    # --- Checks, before anything is written -------------------------------------------------------

    def check_unmoved(self) -> None:
        """Raises ``ConflictError``, which names what is not as the plan has seen it."""
        moved = [
            f"“{each.planned.name}” ({each.kind.name.lower()})"
            for each in self._changes
            if digest_of(each.before) != each.planned.seen
        ]
        moved += self._gone()
        if moved:
            more = len(moved) - _NAMED
            rest = f" and {more} more" if more > 0 else ""
            names = ", ".join(moved[:_NAMED])
            raise ConflictError(f"Changed since the plan was made: {names}{rest}. Make another.")

    def _gone(self) -> Iterable[str]:
        """What the changes refer to and is not there any more."""
        own = {each.planned.id for each in self._changes}
        new = {_own_version(each) for each in self._changes}
        scripts: dict[str, str] = {}
        versions: dict[str, str] = {}
        for each in self._changes:
            if each.after is None:
                continue
            scripts[str(each.kind.script_of(each.id, each.after))] = (
                f"the script of “{each.planned.name}”"
            )
            if (version := each.kind.version_of(each.after)) is not None:
                versions[str(version)] = f"the version of “{each.planned.name}”"
            for name, library in each.planned.libraries.items():
                versions[library] = f"the library “{name}”"
        found = {*own, *new}
        for model, ids in ((Script, scripts), (ScriptVersion, versions)):
            rows = model.objects.of_organisation(self._organisation).filter(pk__in=ids)
            found |= {str(pk) for pk in rows.order_by().values_list("pk", flat=True)}
        return [text for key, text in (scripts | versions).items() if key not in found]

    def scopes(self) -> set[Scope]:
        needed = {each.kind.scope_of(each.before, each.after) for each in self._changes}
        return needed | self._scope_of_sources()

    def scopes_of_drafts(self) -> set[Scope]:
        return {Scope.WRITE_DRAFTS}

    def _scope_of_sources(self) -> set[Scope]:
        # A new source is written, even one from another version.
        return {Scope.WRITE_DRAFTS for each in self._changes if each.planned.source}

    # --- Changes ----------------------------------------------------------------------------------

    def put(self, author: Author, origin: Origin) -> Sequence[Issued]:
        save_planned_versions(self._organisation, self._versions(), author)
        issued: list[Issued] = []
        for kind in kinds():
            issued += self._put(kind, origin, are_deletions=False)
        # What stays may have left a script that goes.
        for kind in reversed(kinds()):
            self._put(kind, origin, are_deletions=True)
        return issued

    def _put(self, kind: Kind, origin: Origin, *, are_deletions: bool) -> Sequence[Issued]:
        states: Mapping[uuid.UUID, State | None] = {
            each.id: each.after
            for each in self._changes
            if each.kind is kind and each.is_deletion is are_deletions
        }
        if not states:
            return ()
        try:
            return kind.put(self._organisation, states, origin=origin)
        except LimitExceededError:
            raise
        except ValidationError as error:
            # The plan was checked, so something else has changed, such as who has a name.
            message = f"The plan does not fit any more. {' '.join(error.messages)}"
            raise ConflictError(message) from None

    def _versions(self) -> list[PlannedVersion]:
        return [
            PlannedVersion(
                id=uuid.UUID(version),
                script_id=each.id,
                script_name=each.planned.name,
                digest=each.planned.source or "",
                libraries=each.planned.libraries,
            )
            for each in self._changes
            if (version := _own_version(each)) is not None
        ]

    def save_drafts(self, author: Author, origin: Origin) -> Sequence[Issued]:
        self._check_drafts_suffice()
        new = {each.id: each.after for each in self._changes if each.before is None}
        scripts = {pk: state | {"version": None} for pk, state in new.items() if state is not None}
        if scripts:
            kinds()[0].put(self._organisation, scripts, origin=origin)
        save_planned_drafts(self._organisation, self._versions(), author)
        return ()

    def _check_drafts_suffice(self) -> None:
        """Raises ``ValidationError`` where more would change than sources of scripts."""
        for each in self._changes:
            before, after = each.before, each.after
            is_source = each.kind is kinds()[0] and after is not None
            if is_source and before is not None and after is not None:
                is_source = before | {"version": after["version"]} == after
            if not is_source:
                message = (
                    f"Drafts hold sources of scripts only, and “{each.planned.name}” would change "
                    "otherwise. Publish the plan."
                )
                raise ValidationError({"publish": ValidationError(message, code="invalid")})


def _own_version(change: _Change) -> str | None:
    """The version that the plan makes for a script."""
    if change.planned.source is None or change.after is None:
        return None
    version: str = change.after["version"]
    return version
