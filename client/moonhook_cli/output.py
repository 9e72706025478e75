"""What commands print: tables for people, JSON for programs."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

from moonhook_cli.redaction import redacted

if TYPE_CHECKING:
    from rich.console import Console

# What the server writes, in UTC, to the microsecond.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)")


class Output:
    """Standard output of a command. Colours only on a terminal; in a pipe lines are not cut."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def json(self, document: object) -> None:
        # Control characters of payloads steer no terminal.
        sys.stdout.write(json.dumps(document, ensure_ascii=sys.stdout.isatty()) + "\n")
        sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """A line for a person; nothing with --json."""
        if not self.as_json:
            _write(sys.stdout, text, style)

    def note(self, text: str) -> None:
        """A line about the command itself, on standard error."""
        _write(sys.stderr, text)

    def error(self, message: str, advice: str, code: str) -> None:
        message, advice = redacted(message), redacted(advice)
        if self.as_json:
            self.json({"error": {"code": code, "message": message, "advice": advice}})
            return
        _write(sys.stderr, f"error: {message}", "bold red")
        _write(sys.stderr, advice)

    def table(
        self, rows: Sequence[Mapping[str, Any]], columns: Iterable[tuple[str, str]], empty: str
    ) -> None:
        """Rows as JSON, or as a table with these columns: key and title."""
        if self.as_json:
            self.json(list(rows))
            return
        if not rows:
            self.say(empty)
            return
        from rich.table import Table  # noqa: PLC0415  rich takes long to import.
        from rich.text import Text  # noqa: PLC0415

        columns = list(columns)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for key, title in columns:
            # An id in one piece can be copied.
            table.add_column(title, overflow="fold", no_wrap=key == "id")
        for row in rows:
            table.add_row(*(Text(_cell(row.get(key))) for key, _ in columns))
        _console(sys.stdout).print(table)


def _write(stream: TextIO, text: str, style: str = "") -> None:
    text = printable(text)
    if style and stream.isatty():
        from rich.text import Text  # noqa: PLC0415  rich takes long to import.

        _console(stream).print(Text(text, style=style), soft_wrap=True)
    else:
        stream.write(f"{text}\n")
        stream.flush()


@cache
def _console(stream: TextIO) -> "Console":
    """For tables and colours."""
    from rich.console import Console  # noqa: PLC0415  rich takes long to import.

    width = None if stream.isatty() else 10_000
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)


def printable(text: str) -> str:
    """The text without control characters: what scripts and callers write steers no terminal."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def short_time(text: str) -> str:
    """A time of the server to the second; any other text as it is."""
    found = _TIME.fullmatch(text)
    return f"{found[1]} {found[2]}Z" if found else text


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return printable(short_time(str(value))).replace("\n", " ")
