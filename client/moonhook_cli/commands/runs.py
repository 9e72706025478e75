"""runs and refused: what was called, what came of it, and doing it again."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from moonhook_cli.context import Context, first_option, pass_context, until_interrupted
from moonhook_cli.errors import CommandError, Exit
from moonhook_cli.following import Reconnecting
from moonhook_cli.look_ups import find_hook
from moonhook_cli.output import short_time
from moonhook_cli.server import Server
from moonhook_cli.shown_runs import COLUMNS, ENDED, FAILURES, FULL, OUTLINE, row_of, show_run

_FEED = f"""query Feed($cursor: String, $filter: RunFilter) {{
  runsSince(cursor: $cursor, first: 100, filter: $filter) {{
    nodes {{ {OUTLINE} }} cursor hasMore
  }}
}}"""
_LIST = f"""query Runs($first: Int!, $hook: ID, $status: RunStatus) {{
  runs(first: $first, hook: $hook, status: $status) {{ nodes {{ {OUTLINE} }} }}
}}"""
_SHOW = f"query Run($id: ID!) {{ run(id: $id) {{ {FULL} }} }}"
_REPLAY = "mutation Replay($ids: [ID!]) { replayRuns(ids: $ids) }"
_REPLAYS = """query Replays($script: ID) {
  runs(first: 50, script: $script) { nodes { id replayOf { id } } }
}"""
_SCRIPT = "query Script($id: ID!) { run(id: $id) { status script { id } } }"
_REFUSED = """query Refused($first: Int!, $hook: ID) {
  refusedCalls(first: $first, hook: $hook) {
    nodes { id at reason method hook { name } script { name } %s }
  }
}"""
_POLL_SECONDS = 1
# Runs that ended a little before `--follow` are shown at its beginning.
_HISTORY = timedelta(minutes=15)
_hook_option = click.option("--hook", metavar="HOOK", help="Only this hook: SCRIPT/HOOK or its id.")


@click.group(invoke_without_command=True)
@click.option("--follow", is_flag=True, help="Go on with those that end from now on.")
@click.option("--failed", is_flag=True, help="Only those that failed.")
@_hook_option
@first_option
@click.pass_context
def runs(group: click.Context, hook: str | None, first: int, *, follow: bool, failed: bool) -> None:
    """List runs, newest first."""
    if group.invoked_subcommand is not None:
        return
    context: Context = group.obj
    server = context.server
    hook_id = find_hook(server, hook)["id"] if hook else None
    if not follow:
        rows = [row_of(run) for run in _newest(server, first, hook_id, failed=failed)]
        context.output.table(rows, COLUMNS, "There are no runs.")
        return
    with until_interrupted(context):
        for run in _followed(context, first, hook_id, failed=failed):
            row = row_of(run)
            if context.output.as_json:
                context.output.json(row)
            style = "" if run["status"] == "Succeeded" else "red"
            values = (short_time(str(row[key] or "-")) for key, _ in COLUMNS)
            context.output.say("  ".join(values), style)


def _newest(server: Server, first: int, hook: str | None, *, failed: bool) -> list[dict[str, Any]]:
    found = [
        run
        for status in (FAILURES if failed else (None,))
        for run in server.graphql(_LIST, first=first, hook=hook, status=status)["runs"]["nodes"]
    ]
    return sorted(found, key=lambda run: str(run["startedAt"]), reverse=True)[:first]


def _followed(
    context: Context, first: int, hook: str | None, *, failed: bool
) -> Iterator[dict[str, Any]]:
    """The last runs that ended, then each one that ends, once, in the order of their ends."""
    server = context.server
    server.graphql("{ __typename }")
    since = (server.time or datetime.now(UTC)) - _HISTORY
    chosen = {"since": since.isoformat(), **({"hook": hook} if hook else {})}
    history: list[dict[str, Any]] = []
    is_history = True
    following = Reconnecting(server, context.output.note)
    for page, has_more in following.pages(_FEED, None, filter=chosen):
        ended = [run for run in page if not failed or run["status"] in FAILURES]
        if is_history:
            history = [*history, *ended][-first:]
            if not has_more:
                yield from history
                is_history = False
        else:
            yield from ended


@runs.command()
@click.argument("run_id", metavar="ID")
@pass_context
def show(context: Context, run_id: str) -> None:
    """Show a run with its reply, log and error."""
    run = context.server.graphql(_SHOW, id=run_id)["run"]
    show_run(context.output, run, {})


@runs.command()
@click.argument("run_ids", metavar="ID...", nargs=-1, required=True)
@pass_context
def replay(context: Context, run_ids: tuple[str, ...]) -> None:
    """Queue the payloads of runs again.

    The live versions of their scripts run with them.
    """
    count = context.server.graphql(_REPLAY, ids=list(run_ids))["replayRuns"]
    if context.output.as_json:
        context.output.json({"queued": count})
    context.output.say(f"Queued: {count}. Follow them: moonhook runs --follow")


@runs.command()
@click.argument("run_id", metavar="ID")
@pass_context
def retry(context: Context, run_id: str) -> None:
    """Replay a run, wait for the end of the first attempt, and show it."""
    server = context.server
    old = server.graphql(_SCRIPT, id=run_id)["run"]
    script = old["script"]["id"]
    known = set(_replays_of(server, run_id, script))
    server.graphql(_REPLAY, ids=[run_id])
    new = [found for found in _replays_of(server, run_id, script) if found not in known]
    if not new:
        raise CommandError(
            "The replay is queued, but is not among the newest runs.",
            "See them: moonhook runs",
        )
    context.output.note(f"Queued as {new[0]}; waiting for its end…")
    while server.graphql(_SCRIPT, id=new[0])["run"]["status"] not in ENDED:
        time.sleep(_POLL_SECONDS)
    run = server.graphql(_SHOW, id=new[0])["run"]
    show_run(context.output, run, {})
    if run["status"] != "Succeeded":
        raise click.exceptions.Exit(Exit.FAILED)


def _replays_of(server: Server, run_id: str, script: str) -> list[str]:
    nodes = server.graphql(_REPLAYS, script=script)["runs"]["nodes"]
    return [run["id"] for run in nodes if (run["replayOf"] or {}).get("id") == run_id]


@click.command()
@_hook_option
@first_option
@click.option("--details", is_flag=True, help="With what was wrong, which needs ReadPayloads.")
@pass_context
def refused(context: Context, hook: str | None, first: int, *, details: bool) -> None:
    """List calls that were refused, newest first."""
    server = context.server
    hook_id = find_hook(server, hook)["id"] if hook else None
    query = _REFUSED % ("detail hints explanations clientAddress" if details else "")
    rows = [
        {**row, "hook": (row["hook"] or {}).get("name"), "script": row["script"]["name"]}
        for row in server.graphql(query, first=first, hook=hook_id)["refusedCalls"]["nodes"]
    ]
    columns = [
        ("at", "AT"),
        ("reason", "REASON"),
        ("script", "SCRIPT"),
        ("hook", "HOOK"),
        ("method", "METHOD"),
    ]
    if details:
        columns += [("clientAddress", "FROM"), ("explanations", "WHAT TO DO")]
    context.output.table(rows, columns, "No call was refused.")
