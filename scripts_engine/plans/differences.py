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
from scripts_engine.releases.kinds import State, digest_of, kinds

# Changes whose sources are in memory together.
_BATCH = 100


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change of a plan, for people."""

    kind: str
    name: str
    action: str
    _place: int
    _differences: "_Differences"

    @property
    def difference(self) -> str | None:
        """Lines of words and a unified diff; ``None`` if the object has changed since the plan."""
        return self._differences.of(self._place)


def shown_changes(plan: Plan) -> list[ShownChange]:
    planned = changes_of(plan)
    differences = _Differences(plan.organisation, planned)
    return [
        ShownChange(each.kind, each.name, each.action, place, differences)
        for place, each in enumerate(planned)
    ]


class _Differences:
    """The differences of a plan's changes from what is there now, read when they are asked for."""

    def __init__(self, organisation: Organisation, planned: Sequence[PlannedChange]) -> None:
        self._organisation = organisation
        self._planned = planned
        self._found: dict[int, str | None] = {}

    def of(self, place: int) -> str | None:
        if place not in self._found:
            self._find(place - place % _BATCH)
        return self._found[place]

    def _find(self, first: int) -> None:
        """Those of one batch, in a fixed number of statements."""
        batch = dict(enumerate(self._planned[first : first + _BATCH], first))
        self._found |= dict.fromkeys(batch)
        diffs = self._source_diffs(list(batch.values()))
        for kind in kinds():
            pairs: dict[int, tuple[State | None, State | None]] = {}
            for place, each in batch.items():
                before, after = self._states.get(each.id), each.after
                if each.kind != kind.name or digest_of(before) != each.seen:
                    continue
                if each.id in diffs and after is not None:
                    # There is no version of the new source yet.
                    after = after | {"version": None if before is None else before["version"]}
                pairs[place] = before, after
            words = kind.differences(self._organisation, list(pairs.values())) if pairs else ()
            for place, text in zip(pairs, words, strict=True):
                lines = diffs.get(batch[place].id, ())
                self._found[place] = "\n".join(filter(None, [text, *lines]))

    def _source_diffs(self, batch: Sequence[PlannedChange]) -> dict[str, list[str]]:
        """Unified diffs from what is live to the sources of versions to be made, by object."""
        new = {each.id: each.source for each in batch if each.source is not None and each.after}
        live = {object_id: (self._states.get(object_id) or {}).get("version") for object_id in new}
        given = sources_of(self._organisation, set(new.values())) if new else {}
        versions = ScriptVersion.objects.of_organisation(self._organisation)
        versions = versions.filter(pk__in={version for version in live.values() if version})
        sources = {str(pk): source for pk, source in versions.values_list("pk", "source")}
        return {
            object_id: unified_diff(
                sources.get(live[object_id] or "", "").splitlines(),
                given.get(digest, "").splitlines(),
                old_name="nothing" if live[object_id] is None else "live",
                new_name="planned",
            )
            for object_id, digest in new.items()
        }

    @cached_property
    def _states(self) -> dict[str, State]:
        found: dict[str, State] = {}
        for kind in kinds():
            ids = [uuid.UUID(each.id) for each in self._planned if each.kind == kind.name]
            states = kind.states(self._organisation, ids) if ids else {}
            found |= {str(object_id): state for object_id, state in states.items()}
        return found
