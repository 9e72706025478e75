"""The admin's pages of the script engine. Importing this registers them."""

from scripts_engine.admin import hooks, panels, runs, scripts, secrets, stored_values, versions

__all__ = ["hooks", "panels", "runs", "scripts", "secrets", "stored_values", "versions"]
