from scripts_engine.models.release import Action, Blob, Plan, Release, ReleaseChange
from scripts_engine.models.run import Run, RunStatus, Trigger
from scripts_engine.models.script import (
    FailureNotice,
    RequiredLibrary,
    Script,
    ScriptVersion,
    VersionState,
)
from scripts_engine.models.stored import RunStorage, Secret, StoredValue

__all__ = [
    "Action",
    "Blob",
    "FailureNotice",
    "Plan",
    "Release",
    "ReleaseChange",
    "RequiredLibrary",
    "Run",
    "RunStatus",
    "RunStorage",
    "Script",
    "ScriptVersion",
    "Secret",
    "StoredValue",
    "Trigger",
    "VersionState",
]
