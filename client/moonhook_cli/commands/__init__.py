"""The commands, in the order of their help."""

import click

from moonhook_cli.commands.login import login, logout, session, whoami

COMMANDS: tuple[click.Command, ...] = (login, logout, whoami, session)
