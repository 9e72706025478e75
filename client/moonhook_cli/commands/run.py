"""run and watch: a local file in the server's sandbox."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import watchfiles

from moonhook_cli.context import Context, pass_context, until_interrupted
from moonhook_cli.errors import CommandError, Exit
from moonhook_cli.folder import SETTINGS, FolderError, find_folder
from moonhook_cli.look_ups import all_nodes, find_script
from moonhook_cli.settings import Settings, Target, name_key
from moonhook_cli.shown_runs import FULL, REQUEST_HEADERS, headers_of, show_run

_RUN = f"""mutation Run($script: ID!, $source: String!, $method: String, $query: String,
    $headers: [HeaderInput!], $body: String) {{
  runScript(script: $script, source: $source, method: $method, query: $query, headers: $headers,
      body: $body) {{ {FULL} }}
}}"""
_RECORDED = f"""query Recorded($id: ID!) {{
  run(id: $id) {{
    requestMethod requestPath requestQuery requestBody requestBytes {REQUEST_HEADERS}
  }}
}}"""
_LIVE = """query Live($name: String!, $after: String) {
  scripts(first: 100, name: $name, after: $after) {
    nodes { name live { source } }
    pageInfo { hasNextPage endCursor }
  }
}"""
_REQUIRE = re.compile(r"\brequire\s*\(?\s*[\"']([^\"'\n]+)[\"']")
_KEYS = {"method", "query", "headers", "body"}

Event = dict[str, Any]


def _event_options(command: Any) -> Any:
    for option in (
        click.option("--from-run", metavar="ID", help="The event of a recorded run."),
        click.option("--body", metavar="TEXT", help="The payload; `-` reads standard input."),
        click.option(
            "--event",
            "event_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="JSON with method, query, headers (an object) and body (text or any value).",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_event_options
@pass_context
def run(
    context: Context, file: Path, event_file: Path | None, body: str | None, from_run: str | None
) -> None:
    """Run a local file in the server's sandbox, without saving it.

    Its effects are real: http calls are sent, values are stored and pushes are queued.
    """
    attempt = _Attempt(context, file)
    event = _event(context, event_file, body, from_run)
    attempt.tell_libraries_that_differ()
    attempt.say_effects_are_real()
    if not attempt.run(event):
        raise click.exceptions.Exit(Exit.FAILED)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_event_options
@pass_context
def watch(
    context: Context, file: Path, event_file: Path | None, body: str | None, from_run: str | None
) -> None:
    """Run a local file now, and again each time that it is saved.

    Ctrl-C ends it.
    """
    with until_interrupted(context):
        _watch(context, file, _event(context, event_file, body, from_run))


def _watch(context: Context, file: Path, event: Event) -> None:
    attempt = _Attempt(context, file)
    attempt.tell_libraries_that_differ()
    attempt.say_effects_are_real()
    place = attempt.folder.root / attempt.path
    # Editors replace the file, so its directory is watched. It is before the first run, so that
    # no save is missed.
    saves = watchfiles.watch(
        place.parent,
        watch_filter=lambda _, changed: Path(changed).name == place.name,
        rust_timeout=500,
        yield_on_timeout=True,
    )
    next(saves)
    attempt.run_telling_errors(event)
    for changes in saves:
        if changes and place.exists():
            attempt.run_telling_errors(event)


class _Attempt:
    """A file of the folder, and the script of its name on the server."""

    def __init__(self, context: Context, file: Path) -> None:
        self._context = context
        self.folder = find_folder()
        self.path = self.folder.path_of(file)
        if self.folder.read(self.path) is None:
            raise FolderError(self.path, "is not there.", "Check the name of the file.")
        settings = Settings(self.folder.read(SETTINGS) or "")
        target: Target = settings.target(None)
        context.use_profile(target.profile)
        sources = self.folder.sources()
        self._settings = settings
        names = {path: name for name, path in settings.names(sources).items()}
        if not self.path.startswith("scripts/") or self.path not in names:
            raise CommandError(
                f"{self.path} is not a script.",
                "Run a file of scripts/ that requires it; libraries have no runs.",
            )
        self._name = names[self.path]
        found = find_script(context.server, self._name)
        if found is None:
            raise CommandError(
                f"The server does not have the script “{self._name}” yet.",
                "Make it without putting its source live: moonhook push --draft",
                "NOT_FOUND",
            )
        self._script_id = found["id"]

    def tell_libraries_that_differ(self) -> None:
        """The server runs the script with its own libraries, whatever the folder has."""
        sources = self.folder.sources()
        paths = self._settings.names(sources)
        left, seen = [self.path], set[str]()
        while left:
            names = set(_REQUIRE.findall(sources[left.pop()])) & paths.keys() - seen
            seen |= names
            for name in sorted(names):
                left.append(paths[name])
                found = all_nodes(self._context.server, _LIVE, "scripts", name=name)
                live = [each["live"] for each in found if name_key(each["name"]) == name_key(name)]
                if live and live[0] and live[0]["source"] != sources[paths[name]]:
                    self._context.output.note(
                        f"{paths[name]} differs from what is live; the run uses what is live."
                    )

    def say_effects_are_real(self) -> None:
        self._context.output.note(
            "Effects are real: http calls are sent, values are stored and pushes are queued."
        )

    def run_telling_errors(self, event: Event) -> None:
        """Runs it; an error that the next save may mend does not end the watch."""
        try:
            self.run(event)
        except CommandError as error:
            if error.exit_code != Exit.FAILED:
                raise
            self._context.output.error(error.message, error.advice, error.code)

    def run(self, event: Event) -> bool:
        """Whether it succeeded."""
        source = self.folder.read(self.path)
        sources = self.folder.sources()
        data = self._context.server.graphql(_RUN, script=self._script_id, source=source, **event)[
            "runScript"
        ]
        files = {
            name: (path, sources[path]) for name, path in self._settings.names(sources).items()
        }
        show_run(self._context.output, data, files)
        return bool(data["status"] == "Succeeded")


def _event(
    context: Context, event_file: Path | None, body: str | None, from_run: str | None
) -> Event:
    if sum(given is not None for given in (event_file, body, from_run)) > 1:
        raise CommandError(
            "More than one event is given.", "Give one of --event, --body and --from-run."
        )
    if event_file is not None:
        return _read_event(event_file)
    if from_run is not None:
        return _recorded(context, from_run)
    if body == "-":
        return {"body": sys.stdin.read()}
    return {"body": body or ""}


def _read_event(file: Path) -> Event:
    try:
        document = json.loads(file.read_bytes())
    except ValueError as error:
        raise CommandError(f"{file} is not JSON: {error}.", "Correct the file.") from None
    if not isinstance(document, dict) or document.keys() - _KEYS:
        raise CommandError(
            f"{file} is not an event.", f"Write an object with {', '.join(sorted(_KEYS))}."
        )
    headers = document.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise CommandError(
            f"`headers` of {file} is not an object of texts.",
            'Write it as {"X-Shop": "tea"}.',
        )
    body = document.get("body", "")
    return {
        **{key: document[key] for key in ("method", "query") if key in document},
        "headers": [{"name": name, "value": value} for name, value in headers.items()],
        "body": body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
    }


def _recorded(context: Context, run_id: str) -> Event:
    recorded = context.server.graphql(_RECORDED, id=run_id)["run"]
    if recorded["requestBody"] is None and recorded["requestBytes"]:
        raise CommandError(
            "The payload of this run was removed, or is not text.", "Choose another run."
        )
    headers, left_out = headers_of(recorded)
    if left_out:
        context.output.note(f"Without headers that may be credentials: {', '.join(left_out)}.")
    if recorded["requestPath"]:
        context.output.note(f"Without the path {recorded['requestPath']}.")
    return {
        "method": recorded["requestMethod"],
        "query": recorded["requestQuery"],
        "headers": [{"name": name, "value": value} for name, value in headers],
        "body": recorded["requestBody"] or "",
    }
