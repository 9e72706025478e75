"""Attacks on the sandbox, included in releases so that `check_sandbox` can run them anywhere."""
