from scripts_engine.models.release import Action, Blob, Plan, Release, ReleaseChange
from scripts_engine.models.run import Run, RunStatus, Trigger
from scripts_engine.models.script import (
    AlertScript,
    FailureNotice,
    NoticeWay,
    RequiredLibrary,
    Script,
    ScriptVersion,
    VersionState,
)
from scripts_engine.models.stored import RunStorage, Secret, StoredValue
from scripts_engine.models.usage import DailyUsage, UsagePosition

__all__ = [
    "Action",
    "AlertScript",
    "Blob",
    "DailyUsage",
    "FailureNotice",
    "NoticeWay",
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
    "UsagePosition",
    "VersionState",
]
