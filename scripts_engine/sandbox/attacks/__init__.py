"""Attacks on the sandbox. They ship, so that `check_sandbox` can try them on any machine."""
