"""Runs the client as `python -m moonhook_cli`."""

from moonhook_cli.main import main

main()
