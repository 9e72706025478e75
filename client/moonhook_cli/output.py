"""What commands print: tables for people, JSON for programs."""

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from moonhook_cli.redaction import redacted

# What the server writes, in UTC, to the microsecond.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+00:00|Z)")


class Output:
    """Standard output of a command. Colours only on a terminal; in a pipe lines are not cut."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        width = None if sys.stdout.isatty() else 10_000
        self.console = Console(highlight=False, markup=False, emoji=False, width=width)
        self.errors = Console(
            stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True
        )

    def json(self, document: object) -> None:
        # Control characters of payloads steer no terminal.
        sys.stdout.write(json.dumps(document, ensure_ascii=sys.stdout.isatty()) + "\n")
        sys.stdout.flush()

    def say(self, text: str, style: str = "") -> None:
        """A line for a person; nothing with --json."""
        if not self.as_json:
            self.console.print(Text(printable(text), style=style), soft_wrap=True)

    def note(self, text: str) -> None:
        """A line about the command itself, on standard error."""
        self.errors.print(Text(printable(text)))

    def error(self, message: str, advice: str, code: str) -> None:
        message, advice = redacted(message), redacted(advice)
        if self.as_json:
            self.json({"error": {"code": code, "message": message, "advice": advice}})
            return
        self.errors.print(Text(f"error: {printable(message)}", style="bold red"))
        self.errors.print(Text(printable(advice)))

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
        columns = list(columns)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for key, title in columns:
            # An id in one piece can be copied.
            table.add_column(title, overflow="fold", no_wrap=key == "id")
        for row in rows:
            table.add_row(*(Text(_cell(row.get(key))) for key, _ in columns))
        self.console.print(table)


def printable(text: str) -> str:
    """The text without control characters: what scripts and callers write steers no terminal."""
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
