"""The commands, in the order of their help."""

import click

from moonhook_cli.commands.completion import completion
from moonhook_cli.commands.folder import diff, init, pull, push
from moonhook_cli.commands.hooks import hooks
from moonhook_cli.commands.listen import listen
from moonhook_cli.commands.login import login, logout, session, whoami
from moonhook_cli.commands.organisation import keys, releases, schedules
from moonhook_cli.commands.run import run, watch
from moonhook_cli.commands.runs import refused, runs
from moonhook_cli.commands.secrets import secrets

COMMANDS: tuple[click.Command, ...] = (
    login, logout, whoami, session,
    init, pull, diff, push,
    run, watch,
    runs, refused, listen, hooks, secrets, schedules, releases, keys,
    completion,
)  # fmt: skip
