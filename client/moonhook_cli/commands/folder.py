"""init, pull, diff and push."""

import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from moonhook_cli.context import Context, pass_context
from moonhook_cli.errors import CommandError, DiffersError, NotAllowedError
from moonhook_cli.folder import SETTINGS, Folder, find_folder
from moonhook_cli.look_ups import all_releases
from moonhook_cli.output import short_time
from moonhook_cli.pulling import pull as pull_into
from moonhook_cli.remote import (
    Remote,
    apply_plan,
    check_organisation,
    make_plan,
    missing_blobs,
    read_remote,
    read_sources,
)
from moonhook_cli.settings import Manifest, Settings, Target, digest_of, with_sources_only
from moonhook_cli.state import (
    State,
    forget_sent,
    read_sent,
    read_state,
    write_sent,
    write_state,
)

_CHANGE_COLUMNS = (("action", "ACTION"), ("kind", "KIND"), ("name", "NAME"))
_MOST_TOLD = 3
_to_option = click.option("--to", "environment", metavar="ENV", help="An [env.ENV] of the file.")
_prune_option = click.option(
    "--prune", is_flag=True, help="Delete on the server what the folder does not have."
)


@click.command(short_help="Make a folder for scripts.")
@click.argument("directory", default=".", type=click.Path(path_type=Path))
@pass_context
def init(context: Context, directory: Path) -> None:
    """Make a folder for scripts: moonhook.toml and names for the Lua language server."""
    if (directory / SETTINGS).exists():
        raise CommandError(
            f"{directory / SETTINGS} is there already.", "Get what is live: moonhook pull"
        )
    directory.mkdir(parents=True, exist_ok=True)
    folder = Folder(directory.resolve())
    templates = files("moonhook_cli") / "templates"
    made = {
        SETTINGS: "moonhook.toml",
        ".luarc.json": "luarc.json",
        "moonhook.lua": "moonhook.lua",
        ".gitattributes": "gitattributes",
    }
    written = []
    for path, template in made.items():
        if folder.read(path) is None:
            folder.write(path, (templates / template).read_text(encoding="utf-8"))
            written.append(path)
    for path in ("scripts", "libraries"):
        (folder.root / path).mkdir(exist_ok=True)
    folder.write(".moonhook/.gitignore", "*\n")
    if context.output.as_json:
        context.output.json({"folder": str(folder.root), "files": written})
    context.output.say(f"Made {', '.join(written)}. Get what is live: moonhook pull")


@click.command()
@click.option("--from", "environment", metavar="ENV", help="An [env.ENV] of the file.")
@pass_context
def pull(context: Context, environment: str | None) -> None:
    """Get what is live into the folder.

    What you changed stays. Where the server changed the same lines, the file has both between
    conflict markers, as with git.
    """
    work = _Work(context, environment)
    sources = read_sources(context.server, work.remote.manifest)
    pulled = pull_into(work.folder, work.target, work.remote, sources, work.state)
    write_state(work.folder, environment, pulled.state)
    rows = [{"action": action, "file": path} for path, action in pulled.changes.items()]
    if not pulled.conflicts:
        columns = (("action", "ACTION"), ("file", "FILE"))
        context.output.table(rows, columns, "Nothing is new on the server.")
        return
    if not context.output.as_json:
        context.output.table(rows, (("action", "ACTION"), ("file", "FILE")), "")
    raise CommandError(
        f"Changed on both sides: {', '.join(pulled.conflicts)}.",
        "Choose between the lines from <<<<<<< to >>>>>>>, then push.",
        "CONFLICT",
    )


@click.command()
@_to_option
@_prune_option
@pass_context
def diff(context: Context, environment: str | None, *, prune: bool) -> None:
    """Show what a push would change."""
    work = _Work(context, environment)
    plan = work.plan(prune=prune)
    _show(context, plan)


@click.command()
@_to_option
@_prune_option
@click.option("--draft", is_flag=True, help="Save sources alone, as your drafts.")
@click.option("--note", default="", help="What the release is for.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--check", is_flag=True, help="Change nothing; exit 2 if something differs.")
@pass_context
def push(
    context: Context,
    environment: str | None,
    note: str,
    *,
    prune: bool,
    draft: bool,
    yes: bool,
    check: bool,
) -> None:
    """Put the folder live as one release, all or nothing.

    Shows the plan and asks. What went live since your last pull is never overwritten.
    """
    work = _Work(context, environment)
    if check:
        _check(context, work, prune=prune)
        return
    plan = work.plan(prune=prune, only_sources=draft)
    if not plan["changes"]:
        # Without its hooks and settings, the folder may still differ from what is live.
        if not draft:
            work.keep()
        _say_nothing_changes(context)
        return
    work.refuse_overwriting()
    if not context.output.as_json:
        _show(context, plan)
    if not yes:
        _ask(context, "Save these drafts?" if draft else "Put this live?")
    if draft:
        applied = apply_plan(context.server, plan, note=note, publish=False)
    else:
        applied = work.apply(plan, note)
    release = applied["release"]
    if context.output.as_json:
        context.output.json({"changes": plan["changes"], **applied})
        return
    if release and not draft:
        context.output.say(f"Release {release['number']} is live at {work.remote.organisation}.")
    else:
        context.output.say("Saved as your drafts; nothing went live.")
    for issued in applied["issuedHooks"]:
        show_issued_hook(context, issued)


def _say_nothing_changes(context: Context) -> None:
    if context.output.as_json:
        context.output.json({"changes": [], "release": None, "issuedHooks": []})
    context.output.say("Nothing to change.")


class _Work:
    """A folder and the organisation that it is compared with."""

    def __init__(self, context: Context, environment: str | None) -> None:
        self.folder = find_folder()
        self.settings = Settings(self.folder.read(SETTINGS) or "")
        self.target: Target = self.settings.target(environment)
        # Before anything is sent: a file that is wrong ends the command.
        self.sources = self.folder.sources()
        self._context = context
        context.use_profile(self.target.profile)
        self.remote = read_remote(context.server)
        check_organisation(self.remote, self.target.organisation)
        self.state = read_state(self.folder, environment, self.remote.organisation_id)
        self._keep_what_a_push_sent()

    def manifest(self) -> Manifest:
        return self.settings.manifest(self.sources, self.target)

    def plan(self, *, prune: bool, only_sources: bool = False) -> dict[str, Any]:
        """The plan. Raises ``CommandError`` with its problems.

        With ``only_sources``, what is live keeps its settings, hooks and schedules.
        """
        manifest = self.manifest()
        if only_sources and prune:
            raise CommandError(
                "Drafts delete nothing.", "Use --draft or --prune, not both.", "USAGE"
            )
        if only_sources:
            manifest = with_sources_only(manifest, self.remote.manifest)
        plan = make_plan(self._context.server, manifest, by_digest(self.sources), prune=prune)
        if plan["problems"]:
            lines = [
                f"{self._place(manifest, problem['path'])}: {problem['message']}"
                for problem in plan["problems"]
            ]
            raise CommandError(
                "The server refuses this. " + "\n".join(lines),
                "Correct the files named above; nothing was changed.",
                "PROBLEMS",
            )
        return plan

    def _place(self, manifest: Manifest, path: str) -> str:
        """The file or section that a path such as ``scripts[3].source`` is about."""
        section, _, rest = path.partition("[")
        number, _, key = rest.partition("]")
        if section not in manifest or not number.isdigit():
            return path or SETTINGS
        item = manifest[section][int(number)]
        if section == "scripts":
            file = self.settings.names(self.sources).get(item["name"], SETTINGS)
            path = file.removesuffix(".lua").replace("/", ".", 1)
            return file if key in {"", ".source"} else f"{SETTINGS} ({path}{key})"
        name = f"{item['script']}/{item['name']}" if section == "hooks" else item["name"]
        return f'{SETTINGS} ({section}."{name}"{key})'

    def refuse_overwriting(self) -> None:
        if self.state is not None and self.state.manifest != self.remote.manifest:
            raise _overtaken(self._newer_than(self.state.release))

    def apply(self, plan: dict[str, Any], note: str) -> dict[str, Any]:
        """Puts the plan live, and keeps what is live then."""
        organisation = self.remote.organisation_id
        write_sent(self.folder, self.target.name, organisation, self._files)
        try:
            applied = apply_plan(self._context.server, plan, note=note, publish=True)
        except CommandError as error:
            last = self.remote.release["number"] if self.remote.release else None
            if error.code == "CONFLICT" and (newer := self._newer_than(last)):
                raise _overtaken(newer) from None
            raise
        self._keep_after(applied["release"])
        return applied

    def _newer_than(self, number: int | None) -> list[dict[str, Any]]:
        """The releases after that one, at most four, newest first."""
        releases = all_releases(self._context.server, _MOST_TOLD + 1)
        return [release for release in releases if release["number"] > (number or 0)]

    def _keep_what_a_push_sent(self) -> None:
        """After a push that ended before its answer: keeps what it sent if that is live.

        Otherwise the next push would tell its own release as that of another person.
        """
        if self.state is not None and self.state.manifest == self.remote.manifest:
            return
        sent = read_sent(self.folder, self.target.name, self.remote.organisation_id)
        if sent is None or SETTINGS not in sent:
            return
        settings = Settings(sent.pop(SETTINGS))
        try:
            manifest = settings.manifest(sent, settings.target(self.target.name))
            plan = make_plan(self._context.server, manifest, by_digest(sent), prune=False)
        except NotAllowedError:
            return
        if not plan["changes"] and not plan["problems"]:
            self._keep(self.remote, sent | {SETTINGS: settings.text})

    def _keep_after(self, release: dict[str, Any] | None) -> None:
        """Keeps what is live after a push, unless yet another release went live since.

        Then the former state stays, so that the next push tells of that release.
        """
        remote = read_remote(self._context.server)
        newest = remote.release
        if release is None or newest is None or newest["id"] == release["id"]:
            self._keep(remote, self._files)

    def keep(self) -> None:
        """Makes what is live, and is in the folder, the base of the next merge."""
        self._keep(self.remote, self._files)

    @property
    def _files(self) -> dict[str, str]:
        return self.sources | {SETTINGS: self.settings.text}

    def _keep(self, remote: Remote, files: dict[str, str]) -> None:
        number = remote.release["number"] if remote.release else None
        self.state = State(remote.organisation_id, number, remote.manifest, files)
        write_state(self.folder, self.target.name, self.state)
        forget_sent(self.folder, self.target.name)


def by_digest(sources: Mapping[str, str]) -> dict[str, str]:
    return {digest_of(source): source for source in sources.values()}


def _overtaken(releases: list[dict[str, Any]]) -> CommandError:
    told = "\n".join(map(_told, releases[:_MOST_TOLD]))
    more = "\n…" if len(releases) > _MOST_TOLD else ""
    return CommandError(
        f"What is live has changed since your last pull. This push changed nothing.\n{told}{more}",
        "Run `moonhook pull` to take it over, then push again.",
        "CONFLICT",
    )


def _told(release: dict[str, Any]) -> str:
    changes = release["changes"]
    listed = ", ".join("{action} {kind} {name}".format(**each) for each in changes[:_MOST_TOLD])
    more = ", …" if len(changes) > _MOST_TOLD else ""
    note = f" “{release['note']}”" if release["note"] else ""
    at = short_time(release["at"])
    return f"Release {release['number']}{note} by {release['by']}, {at}: {listed}{more}"


def _check(context: Context, work: _Work, *, prune: bool) -> None:
    try:
        plan = work.plan(prune=prune)
    except NotAllowedError as error:
        # A key that may only read cannot upload: a source that the server does not have differs.
        manifest = work.manifest()
        missing = set(missing_blobs(context.server, (s["source"] for s in manifest["scripts"])))
        if not missing:
            raise
        names = [item["name"] for item in manifest["scripts"] if item["source"] in missing]
        raise DiffersError(
            f"These sources differ: {', '.join(names)}.",
            f"Push the folder. (The plan itself was not made: {error.message})",
            "DIFFERS",
        ) from None
    _show(context, plan)
    if plan["changes"]:
        raise click.exceptions.Exit(DiffersError.exit_code)


def _show(context: Context, plan: dict[str, Any]) -> None:
    output = context.output
    if output.as_json:
        output.json({"changes": plan["changes"], "secretsMissing": plan["secretsMissing"]})
        return
    output.table(plan["changes"], _CHANGE_COLUMNS, "Nothing to change.")
    for change in plan["changes"]:
        if change["diff"]:
            output.say(f"\n{change['kind']} {change['name']}", "bold")
            for line in change["diff"].splitlines():
                output.say(line, _style(line))
    profile = f" --profile {context.profile_name}" if context.profile_name else ""
    for name in plan["secretsMissing"]:
        output.note(f"The secret {name} is not set there: moonhook secrets set {name}{profile}")


def _style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _ask(context: Context, question: str) -> None:
    if context.output.as_json or not sys.stdin.isatty():
        raise CommandError(
            "A push asks before it changes something, and nobody can answer here.",
            "Add --yes to push without a question.",
        )
    click.confirm(question, abort=True, err=True)


def show_issued_hook(context: Context, issued: dict[str, Any]) -> None:
    """Prints a hook's URL and call token, which the server shows only once."""
    hook = issued["hook"]
    context.output.say(f"\nHook {hook['script']['name']}/{hook['name']}; shown only now:")
    context.output.say(f"  URL         {hook['url']}")
    context.output.say(f"  secure URL  {hook['secureUrl']}")
    context.output.say(f"  HookID      {hook['id']}")
    context.output.say(f"  call token  {issued['callToken']}")
