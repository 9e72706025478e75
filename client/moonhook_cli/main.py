"""The command `moonhook`."""

import io
import sys

import click

from moonhook_cli import __version__
from moonhook_cli.commands import Commands
from moonhook_cli.errors import CommandError, Exit
from moonhook_cli.output import Output
from moonhook_cli.redaction import redacted


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="moonhook")
@click.option("--profile", metavar="NAME", help="The login to use; `default` if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--debug", is_flag=True, help="Log each request to standard error, without secrets.")
@click.pass_context
def cli(context: click.Context, profile: str | None, *, as_json: bool, debug: bool) -> None:
    """Scripts, hooks and schedules of a Moonhook server.

    To begin: moonhook login URL, then moonhook init FOLDER, and in it moonhook pull.

    Exit codes: 0 done, 1 failed, 2 differs, 3 not logged in or not allowed, 4 unreachable.
    """
    from moonhook_cli.context import Context  # noqa: PLC0415  Help and completion do not need it.

    found = Context(Output(as_json=as_json), profile, debug)
    context.obj = found
    context.call_on_close(found.close)


def main() -> None:
    """Runs the command line; its errors say what to do next, and show no secret."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What the terminal's encoding lacks is shown by its number.
            stream.reconfigure(errors="backslashreplace")
    arguments = _with_global_options_first(sys.argv[1:])
    output = Output(as_json="--json" in arguments)
    try:
        status = cli.main(arguments, prog_name="moonhook", standalone_mode=False)
    except CommandError as error:
        output.error(error.message, error.advice, error.code)
        sys.exit(error.exit_code)
    except click.exceptions.Abort as error:
        # A prompt has no cause: it asks before anything is sent.
        is_prompt = error.__cause__ is None
        advice = "Nothing was changed." if is_prompt else "Look at what happened, then try again."
        output.error("Cancelled.", advice, "CANCELLED")
        sys.exit(Exit.FAILED)
    except click.exceptions.NoArgsIsHelpError as error:
        if output.as_json:
            output.error("No command is given.", "Try: moonhook --help", "USAGE")
        else:
            output.note(error.format_message())
        sys.exit(Exit.FAILED)
    except click.ClickException as error:
        usage = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else ""
        output.error(error.format_message(), f"Try: {usage or 'moonhook'} --help", "USAGE")
        sys.exit(Exit.FAILED)
    except BrokenPipeError:
        sys.exit(Exit.FAILED)
    except Exception as error:  # noqa: BLE001  A traceback could show a secret in its source lines.
        name = type(error).__name__
        output.error(
            f"Unexpected error: {name}: {redacted(str(error))}",
            "Please report it with the command that you typed.",
            "UNEXPECTED",
        )
        sys.exit(Exit.FAILED)
    sys.exit(status if isinstance(status, int) else Exit.DONE)


def _with_global_options_first(arguments: list[str]) -> list[str]:
    """Lets --json, --debug and --profile stand behind the command too."""
    first: list[str] = []
    rest: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument == "--":
            rest += [argument, *given]
        elif argument in {"--json", "--debug"} or argument.startswith("--profile="):
            first.append(argument)
        elif argument == "--profile":
            first += [argument, *(value for value in [next(given, None)] if value is not None)]
        else:
            rest.append(argument)
    return first + rest
