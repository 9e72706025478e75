"""Runs of another version than the live one."""

import uuid
from dataclasses import replace
from typing import TypeVar

from scripts_engine.programs import program_of
from scripts_engine.runs.spec import SavedRun

Spec = TypeVar("Spec", bound=SavedRun)


def pinned_to(spec: Spec, version_id: uuid.UUID | None) -> Spec:
    """The run with this version of its script; ``None`` leaves the one that it has."""
    if version_id is None:
        return spec
    return replace(spec, version_id=version_id, **program_of(version_id)._asdict())
