"""Writes the tables of docs/lua.md from the Lua reference; its prose stays as it is.

    python -m docs.tools.lua

The tables stand between lines that mark them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from scripts_engine.lua_reference import Entry, lua_reference

PAGE = Path(__file__).resolve().parents[1] / "lua.md"

# The beginning names its table; the end is the same for all.
_MARKED = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end of generated -->)", re.DOTALL)


def tables() -> dict[str, str]:
    """Every table of the page in Markdown, by the name that its mark gives."""
    sections, standard, properties = lua_reference()
    by_title = {title: _section(entries) for title, entries in sections.items()}
    return by_title | {
        "properties": _properties(properties),
        "standard library": _standard(standard),
    }


def names_of_tables(page: str) -> list[str]:
    """The names of the tables that the page marks, in its order."""
    return [found[1] for found in _MARKED.findall(page)]


def with_tables(page: str) -> str:
    """Returns the page with its marked tables replaced; raises ``KeyError`` for an unknown name."""
    made = tables()
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[4]}", page)


def _section(entries: Sequence[Entry]) -> str:
    rows = ((f"`{e.signature}`", f"{e.explanation} {e.limits}".strip()) for e in entries)
    return _table(("function", "result"), rows)


def _properties(properties: Mapping[str, str]) -> str:
    rows = ((f"`{name}`", meaning) for name, meaning in properties.items())
    return _table(("name", "value"), rows)


def _standard(entries: Sequence[Entry]) -> str:
    rows = []
    for library, members in groupby(entries, key=lambda entry: entry.name.rpartition(".")[0]):
        listed = list(members)
        names = ", ".join(f"`{entry.name.removeprefix(f'{library}.')}`" for entry in listed)
        limits = " ".join(entry.limits for entry in listed if entry.limits)
        rows.append(
            (f"`{library}`" if library else "basic functions", f"{names}. {limits}".strip())
        )
    return _table(("library", "names"), rows)


def _table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    lines = [head, ("---", "---"), *rows]
    return "".join(f"| {left} | {right} |\n" for left, right in lines)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
