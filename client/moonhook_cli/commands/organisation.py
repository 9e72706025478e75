"""schedules, releases and keys: what else an organisation has."""

import sys

import click

from moonhook_cli.context import Context, first_option, pass_context
from moonhook_cli.errors import CommandError
from moonhook_cli.look_ups import all_nodes, all_releases, find_release

_SCHEDULES = """query Schedules($after: String) {
  schedules(first: 100, after: $after) {
    nodes { id name cron timeZone enabled nextTickAt script { name } }
    pageInfo { hasNextPage endCursor }
  }
}"""
_KEYS = """query Keys($after: String) {
  apiKeys(first: 100, after: $after) {
    nodes { id name key scopes createdAt expiresAt revokedAt lastUsedAt }
    pageInfo { hasNextPage endCursor }
  }
}"""
_UNDO = """mutation Undo($id: ID!, $force: Boolean!) {
  undoRelease(id: $id, force: $force) { id number changes { kind name action } }
}"""


@click.command()
@pass_context
def schedules(context: Context) -> None:
    """List schedules with their next ticks."""
    rows = [
        {**row, "script": row["script"]["name"]}
        for row in all_nodes(context.server, _SCHEDULES, "schedules")
    ]
    columns = (
        ("name", "NAME"),
        ("script", "SCRIPT"),
        ("cron", "CRON"),
        ("timeZone", "TIME ZONE"),
        ("enabled", "ENABLED"),
        ("nextTickAt", "NEXT"),
    )
    context.output.table(rows, columns, "There are no schedules.")


@click.command()
@pass_context
def keys(context: Context) -> None:
    """List API keys.

    It needs the scope ReadKeys. Their secrets are not stored.
    """
    columns = (
        ("name", "NAME"),
        ("key", "KEY"),
        ("scopes", "SCOPES"),
        ("expiresAt", "EXPIRES"),
        ("revokedAt", "REVOKED"),
        ("lastUsedAt", "LAST USED"),
    )
    rows = all_nodes(context.server, _KEYS, "apiKeys")
    context.output.table(rows, columns, "There are no API keys.")


@click.group(invoke_without_command=True)
@first_option
@click.pass_context
def releases(group: click.Context, first: int) -> None:
    """List releases, newest first, and undo one."""
    if group.invoked_subcommand is not None:
        return
    context: Context = group.obj
    rows = all_releases(context.server, first)
    if not context.output.as_json:
        for row in rows:
            row["changed"] = ["{action} {kind} {name}".format(**one) for one in row["changes"]]
    columns = (
        ("number", "NUMBER"),
        ("at", "AT"),
        ("by", "BY"),
        ("note", "NOTE"),
        ("changed", "CHANGES"),
    )
    context.output.table(rows, columns, "There are no releases.")


@releases.command()
@click.argument("release")
@click.option("--force", is_flag=True, help="Discard what has changed since.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_context
def undo(context: Context, release: str, *, force: bool, yes: bool) -> None:
    """Put back what a release replaced, as a new release. RELEASE is a number or an id."""
    found = find_release(context.server, release)
    changed = ", ".join(f"{one['kind']} {one['name']}" for one in found["changes"])
    context.output.note(f"Release {found['number']} changed: {changed}")
    if not yes:
        if context.output.as_json or not sys.stdin.isatty():
            raise CommandError(
                "Undoing asks before it changes something, and nobody can answer here.",
                "Add --yes to undo without a question.",
            )
        click.confirm("Undo it?", abort=True, err=True)
    try:
        made = context.server.graphql(_UNDO, id=found["id"], force=force)["undoRelease"]
    except CommandError as error:
        if error.code == "CONFLICT":
            error.advice = "Add --force to discard what has changed since."
        raise
    if context.output.as_json:
        context.output.json(made)
    context.output.say(f"Release {made['number']} undoes release {found['number']}.")
