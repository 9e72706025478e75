"""secrets: list, set and delete. A value is never an argument, and never shown."""

import sys

import click

from moonhook_cli.context import Context, pass_context
from moonhook_cli.errors import CommandError
from moonhook_cli.redaction import hide

_LIST = "{ secrets { name createdAt updatedAt } }"
_SET = """mutation Set($name: String!, $value: String!) {
  setSecret(name: $name, value: $value) { name updatedAt }
}"""
_DELETE = "mutation Delete($name: String!) { deleteSecret(name: $name) }"


@click.group()
def secrets() -> None:
    """List, set and delete the secrets that scripts read."""


@secrets.command("list")
@pass_context
def list_secrets(context: Context) -> None:
    """List the names of secrets; the server shows no value."""
    rows = sorted(context.server.graphql(_LIST)["secrets"], key=lambda row: str(row["name"]))
    columns = (("name", "NAME"), ("updatedAt", "SET"))
    context.output.table(rows, columns, "There are no secrets.")


@secrets.command("set")
@click.argument("name")
@pass_context
def set_secret(context: Context, name: str) -> None:
    """Create or replace a secret.

    The value is read from a prompt, or from standard input without its last line break.
    """
    if sys.stdin.isatty():
        value = click.prompt("Value", hide_input=True, confirmation_prompt=True, err=True)
    else:
        value = sys.stdin.read()
        value = value.removesuffix("\n").removesuffix("\r")
    if not value:
        raise CommandError("The value is empty.", "Give it at the prompt or on standard input.")
    hide(value)
    row = context.server.graphql(_SET, name=name, value=value)["setSecret"]
    if context.output.as_json:
        context.output.json(row)
    context.output.say(f"{row['name']} is set. Scripts read it from their next run on.")


@secrets.command()
@click.argument("name")
@pass_context
def delete(context: Context, name: str) -> None:
    """Delete a secret. Scripts that read it get nil."""
    context.server.graphql(_DELETE, name=name)
    if context.output.as_json:
        context.output.json({"name": name, "deleted": True})
    context.output.say(f"{name} is deleted.")
