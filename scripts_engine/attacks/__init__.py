"""Attacks on the sandbox: they ship, so that `check_sandbox` tries them wherever scripts run."""
