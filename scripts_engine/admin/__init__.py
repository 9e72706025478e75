"""Registers the script engine's admin pages when imported."""

from scripts_engine.admin import hooks, panels, secrets, stored_values
from scripts_engine.admin.runs import page as runs
from scripts_engine.admin.scripts import page as scripts
from scripts_engine.admin.scripts import versions

__all__ = ["hooks", "panels", "runs", "scripts", "secrets", "stored_values", "versions"]
