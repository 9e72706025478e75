"""hooks: list, create, rotate and test."""

from typing import Any

import click

from moonhook_cli.commands.folder import show_issued_hook
from moonhook_cli.context import Context, pass_context
from moonhook_cli.errors import CommandError, Exit
from moonhook_cli.look_ups import HOOK, all_hooks, find_hook, find_script
from moonhook_cli.shown_runs import FULL, show_run

_ISSUED = f"hook {{ {HOOK} }} callToken"
_CREATE = f"""mutation Create($script: ID!, $name: String) {{
  createHook(script: $script, name: $name) {{ {_ISSUED} }}
}}"""
_ROTATE = f"""mutation Rotate($hook: ID!, $overlap: Int) {{
  rotateCallToken(hook: $hook, overlapSeconds: $overlap) {{ {_ISSUED} }}
}}"""
_TEST = f"mutation Test($hook: ID!) {{ sendTestEvent(hook: $hook) {{ {FULL} }} }}"
_DAY_SECONDS = 24 * 60 * 60
_WEEK_SECONDS = 7 * _DAY_SECONDS
_COLUMNS = (
    ("script", "SCRIPT"),
    ("name", "NAME"),
    ("enabled", "ENABLED"),
    ("sender", "SENDER"),
    ("replyMode", "REPLY"),
    ("secureUrl", "SECURE URL"),
)


@click.group()
def hooks() -> None:
    """List, create, rotate and test hooks."""


@hooks.command("list")
@pass_context
def list_hooks(context: Context) -> None:
    """List the hooks of the organisation."""
    rows = [
        {**{key: value for key, value in hook.items() if key != "url"}, "script": script["name"]}
        for hook in all_hooks(context.server)
        for script in [hook["script"]]
    ]
    rows.sort(key=lambda row: (row["script"], row["name"]))
    context.output.table(rows, _COLUMNS, "There are no hooks.")


@hooks.command()
@click.argument("script")
@click.option("--name", help="Describes the caller; a free name if not given.")
@pass_context
def create(context: Context, script: str, name: str | None) -> None:
    """Create a hook for a script, live at once. Its call token is shown only now."""
    found = find_script(context.server, script)
    if found is None:
        raise CommandError(
            f"There is no script “{script}”.", "Push it first: moonhook push", "NOT_FOUND"
        )
    data = context.server.graphql(_CREATE, script=found["id"], name=name)
    _show(context, data["createHook"])


@hooks.command()
@click.argument("hook")
@click.option(
    "--overlap-seconds",
    metavar="SECONDS",
    type=click.IntRange(0, _WEEK_SECONDS),
    default=_DAY_SECONDS,
    show_default=True,
    help="How long the old token stays valid.",
)
@pass_context
def rotate(context: Context, hook: str, overlap_seconds: int) -> None:
    """Give a hook a new call token, which is shown only now."""
    found = find_hook(context.server, hook)
    data = context.server.graphql(_ROTATE, hook=found["id"], overlap=overlap_seconds)
    _show(context, data["rotateCallToken"])


@hooks.command()
@click.argument("hook")
@pass_context
def test(context: Context, hook: str) -> None:
    """Send a hook a test event, as its sender sends it. The effects are real."""
    found = find_hook(context.server, hook)
    run = context.server.graphql(_TEST, hook=found["id"])["sendTestEvent"]
    show_run(context.output, run, {})
    if run["status"] not in {"Succeeded", "Queued", "Running"}:
        raise click.exceptions.Exit(Exit.FAILED)


def _show(context: Context, issued: dict[str, Any]) -> None:
    if context.output.as_json:
        context.output.json(issued)
        return
    show_issued_hook(context, issued)
