from scripts_engine.models.hook import Hook
from scripts_engine.models.run import Run, RunStatus, Trigger
from scripts_engine.models.script import Script
from scripts_engine.models.script_version import ScriptVersion
from scripts_engine.models.secret import Secret
from scripts_engine.models.stored_value import StoredValue

__all__ = [
    "Hook",
    "Run",
    "RunStatus",
    "Script",
    "ScriptVersion",
    "Secret",
    "StoredValue",
    "Trigger",
]
