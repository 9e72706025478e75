"""Runs `moonhook` in forks of a process that has imported it, one command a line."""

import json
import os
import sys

import click

from moonhook_cli.commands import Commands
from moonhook_cli.main import cli, main


def serve() -> None:
    assert isinstance(cli, Commands)
    context = click.Context(cli)
    for name in cli.list_commands(context):
        cli.get_command(context, name)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            run(**json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def run(arguments: list[str], folder: str, environment: dict[str, str], files: list[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    for number, (name, mode) in enumerate(zip(files, ("r", "w", "w"), strict=True)):
        with open(name, mode) as file:
            os.dup2(file.fileno(), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["moonhook", *arguments]
    status: object = 0
    try:
        main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


serve()
