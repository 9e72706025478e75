"""Runs untrusted Lua in locked-down processes. Knows nothing of Django, nor of the project."""
