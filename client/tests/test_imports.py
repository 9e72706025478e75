"""The client imports nothing of the server, and nothing that a command does not use."""

import ast
import subprocess
import sys
from pathlib import Path

import click
from conftest import MOONHOOK

from moonhook_cli.commands import Commands
from moonhook_cli.main import cli

PACKAGE = Path(__file__).parents[1] / "moonhook_cli"
LIBRARIES = {
    "click", "httpx", "keyring", "moonhook_cli", "platformdirs", "rich", "tomlkit", "watchfiles",
}  # fmt: skip


def imported() -> set[str]:
    """The first part of each imported name."""
    nodes = [
        node for file in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(file.read_text()))
    ]
    plain = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    others = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in plain | others}


def test_only_named_libraries_are_imported() -> None:
    assert "click" in imported()
    assert imported() - LIBRARIES <= set(sys.stdlib_module_names)


def imported_by(*arguments: str) -> set[str]:
    """The libraries that a command imports."""
    python = (sys.executable, "-X", "importtime", MOONHOOK)
    done = subprocess.run([*python, *arguments], capture_output=True, text=True, check=True)
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    return names & LIBRARIES


def test_help_imports_little() -> None:
    assert imported_by("--help") == {"click", "moonhook_cli"}


def test_a_command_imports_no_tables_and_no_command_line_of_others() -> None:
    assert imported_by("push", "--help") == LIBRARIES - {"keyring", "rich", "watchfiles"}


def test_the_list_of_commands_says_what_their_own_help_says() -> None:
    assert isinstance(cli, Commands)
    context = click.Context(cli)
    listed = click.Context(cli).command.get_help(context)

    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=100) in listed
