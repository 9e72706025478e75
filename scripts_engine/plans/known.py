"""What releases of an organisation change, all of it, as manifests and plans compare it."""

import uuid
from collections.abc import Mapping
from typing import NamedTuple

from accounts.models import Organisation
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.kinds import Kind, State, kinds


class Known(NamedTuple):
    """Everything that releases of an organisation change, by kind and id."""

    states: Mapping[str, Mapping[uuid.UUID, State]]
    digests: Mapping[str, str]
    """Of the sources of live and pinned versions, by version."""

    @property
    def scripts(self) -> Mapping[uuid.UUID, State]:
        return self.states[kinds()[0].name]

    def are_in_manifests(self, kind: Kind) -> dict[uuid.UUID, State]:
        """Without scripts that never went live, and what belongs to them."""
        scripts = self.scripts
        return {
            object_id: state
            for object_id, state in self.states[kind.name].items()
            if scripts[kind.script_of(object_id, state)]["version"] is not None
        }


def known_objects(organisation: Organisation) -> Known:
    """Takes a fixed number of statements."""
    script_ids = set(Script.objects.of_organisation(organisation).values_list("pk", flat=True))
    states = {
        kind.name: kind.states(organisation, kind.of_scripts(organisation, script_ids))
        for kind in kinds()
    }
    scripts = states[kinds()[0].name]
    for kind in kinds():
        # A script may have been deleted in between.
        states[kind.name] = {
            object_id: state
            for object_id, state in states[kind.name].items()
            if kind.script_of(object_id, state) in scripts
        }
    versions = {
        version
        for kind in kinds()
        for state in states[kind.name].values()
        if (version := kind.version_of(state)) is not None
    }
    rows = ScriptVersion.objects.filter(pk__in=versions).order_by()
    digests = {str(pk): digest for pk, digest in rows.values_list("pk", "source_digest")}
    return Known(states, digests)
