from scripts_engine.models.hook import Hook
from scripts_engine.models.run import Run, RunStatus, Trigger
from scripts_engine.models.script import Script
from scripts_engine.models.script_version import ScriptVersion

__all__ = ["Hook", "Run", "RunStatus", "Script", "ScriptVersion", "Trigger"]
