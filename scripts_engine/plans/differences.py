"""What the changes of a plan would change, in words and as differences of sources."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from accounts.models import Organisation
from scripts_engine.line_diff import unified_diff
from scripts_engine.models import Plan, ScriptVersion
from scripts_engine.plans.blobs import sources_of
from scripts_engine.plans.planning import PlannedChange, changes_of
from scripts_engine.releases.kinds import State, digest_of, kind_named, kinds


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change of a plan, for people."""

    kind: str
    name: str
    action: str
    _planned: PlannedChange
    _present: "_Present"

    @property
    def difference(self) -> str | None:
        """Lines of words and a unified diff; ``None`` if the object has changed since the plan."""
        planned, organisation = self._planned, self._present.organisation
        before, after = self._present.state_of(planned), planned.after
        if digest_of(before) != planned.seen:
            return None
        kind = kind_named(planned.kind)
        if planned.source is None or after is None:
            return kind.difference(organisation, before, after)
        # There is no version of the new source yet.
        live = None if before is None else before["version"]
        words = kind.difference(organisation, before, after | {"version": live})
        lines = unified_diff(
            _source_of(organisation, live).splitlines(),
            sources_of(organisation, [planned.source]).get(planned.source, "").splitlines(),
            old_name="nothing" if live is None else "live",
            new_name="planned",
        )
        return "\n".join(filter(None, [words, *lines]))


def shown_changes(plan: Plan) -> list[ShownChange]:
    planned = changes_of(plan)
    present = _Present(plan.organisation, planned)
    return [ShownChange(each.kind, each.name, each.action, each, present) for each in planned]


class _Present:
    """The objects of a plan as they are now, read when the first is asked for."""

    def __init__(self, organisation: Organisation, planned: Sequence[PlannedChange]) -> None:
        self.organisation = organisation
        self._planned = planned

    def state_of(self, planned: PlannedChange) -> State | None:
        return self._states.get(planned.id)

    @cached_property
    def _states(self) -> dict[str, State]:
        found: dict[str, State] = {}
        for kind in kinds():
            ids = [uuid.UUID(each.id) for each in self._planned if each.kind == kind.name]
            states = kind.states(self.organisation, ids) if ids else {}
            found |= {str(object_id): state for object_id, state in states.items()}
        return found


def _source_of(organisation: Organisation, version: str | None) -> str:
    if version is None:
        return ""
    versions = ScriptVersion.objects.of_organisation(organisation).filter(pk=version)
    return versions.values_list("source", flat=True).first() or ""
