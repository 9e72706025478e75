"""The commands, in the order of their help; each is imported when it is used.

Importing all of them takes longer than most commands do, and shells start the client to complete
its names.
"""

from importlib import import_module

import click
from click.shell_completion import CompletionItem

_COMMANDS = {
    "login": ("login", "Log in to the server at URL."),
    "logout": ("login", "End the session and forget the secret."),
    "whoami": ("login", "Show the organisation, key and server in use."),
    "session": ("login", "Show the open session: when it was opened and when it expires."),
    "init": ("folder", "Make a folder for scripts."),
    "pull": ("folder", "Get what is live into the folder."),
    "diff": ("folder", "Show what a push would change."),
    "push": ("folder", "Put the folder live as one release, all or nothing."),
    "run": ("run", "Run a local file in the server's sandbox, without saving it."),
    "watch": ("run", "Run a local file now, and again each time that it is saved."),
    "runs": ("runs", "List runs, newest first."),
    "refused": ("runs", "List calls that were refused, newest first."),
    "listen": ("listen", "Repeat the calls of a hook to a local address."),
    "hooks": ("hooks", "List, create, rotate and test hooks."),
    "secrets": ("secrets", "List, set and delete the secrets that scripts read."),
    "schedules": ("organisation", "List schedules with their next ticks."),
    "releases": ("organisation", "List releases, newest first, and undo one."),
    "keys": ("organisation", "List API keys."),
    "completion": ("completion", "Print the completion script of a shell."),
}
_EPILOG = "Every command also takes --profile NAME, --json and --debug: moonhook --help"


class Commands(click.Group):
    """Lists its commands in the order above: those that a newcomer needs come first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"{__name__}.{_COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        own = command.commands.values() if isinstance(command, click.Group) else ()
        for each in (command, *own):
            each.epilog = _EPILOG
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=text)
            for name, (_, text) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)
