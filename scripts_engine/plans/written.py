"""Writes the manifest of an organisation, which a plan of the same organisation does not change."""

import uuid
from collections.abc import Collection, Mapping
from typing import Any

from accounts.models import Organisation
from core.names import name_key
from scripts_engine.plans.known import Known, known_objects
from scripts_engine.plans.manifest import VERSION
from scripts_engine.releases.items import Refers
from scripts_engine.releases.kinds import Kind, State, kinds


def written_manifest(
    organisation: Organisation,
    *,
    script_ids: Collection[uuid.UUID] | None = None,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The scripts that are live, their hooks and schedules; in the order of their names.

    ``script_ids`` limits it to these scripts and what belongs to them. Fields in ``without``, and
    those with their default, are left out. Takes a fixed number of statements.
    """
    known = known_objects(organisation)
    sections = {
        kind.section: [
            item
            for _, item in sorted(
                (_order(known, kind, object_id, state), _item(known, kind, state, without))
                for object_id, state in known.are_in_manifests(kind).items()
                if script_ids is None or kind.script_of(object_id, state) in script_ids
            )
        ]
        for kind in kinds()
    }
    return {"version": VERSION, **sections}


def _order(known: Known, kind: Kind, object_id: uuid.UUID, state: State) -> tuple[str, ...]:
    script = known.scripts[kind.script_of(object_id, state)]
    within = (name_key(script["name"]),) if kind.unique_within else ()
    return (*within, name_key(state["name"]))


def _item(known: Known, kind: Kind, state: State, without: Collection[str]) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    for field in kind.fields:
        value = state[field.of_state]
        if value is not None and field.refers_to is Refers.SCRIPT:
            value = known.scripts[uuid.UUID(value)]["name"]
        elif value is not None and field.refers_to is not None:
            value = known.digests[value]
        values[field.name] = value
    return {
        field.name: values[field.name]
        for field in kind.fields
        if field.is_written
        and field.name not in without
        and (field.is_required or field.is_kept or values[field.name] != field.default(values))
    }
