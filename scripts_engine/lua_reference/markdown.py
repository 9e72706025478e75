"""The tables of docs/lua.md, between lines that mark them; the prose around them is its own."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from scripts_engine.lua_reference.call_and_reply import PROPERTIES
from scripts_engine.lua_reference.entry import Entry, Section
from scripts_engine.lua_reference.sections import SECTIONS
from scripts_engine.lua_reference.standard import STANDARD

# The beginning names its table; the end is the same for all.
_MARKED = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end of generated -->)", re.DOTALL)


def tables() -> dict[str, str]:
    """Every table of the page in Markdown, by the name that its mark gives."""
    by_title = {section.title: _section(section) for section in SECTIONS}
    return by_title | {"properties": _properties(), "standard library": _standard(STANDARD)}


def names_of_tables(page: str) -> list[str]:
    """The names of the tables that the page marks, in its order."""
    return [found[1] for found in _MARKED.findall(page)]


def with_tables(page: str) -> str:
    """Returns the page with its marked tables replaced; raises ``KeyError`` for an unknown name."""
    made = tables()
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[4]}", page)


def _section(section: Section) -> str:
    rows = ((f"`{e.signature}`", f"{e.explanation} {e.limits}".strip()) for e in section.entries)
    return _table(("function", "result"), rows)


def _properties() -> str:
    rows = ((f"`{name}`", meaning) for name, meaning in PROPERTIES.items())
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
