"""The Lua reference: everything that scripts can use, read from lua_reference.toml."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

_TABLE = Path(__file__).with_suffix(".toml")


class Entry(NamedTuple):
    """A function or value that scripts can use; lua_reference.toml describes the fields."""

    name: str
    signature: str
    explanation: str
    example: str = ""
    limits: str = ""
    insert: str = ""
    words: str = ""


class Reference(NamedTuple):
    sections: Mapping[str, tuple[Entry, ...]]
    """Moonhook's own entries, by the title of their table in docs/lua.md."""
    standard: tuple[Entry, ...]
    """What is left of Lua's own library."""
    properties: Mapping[str, str]
    """The meaning of each name that ``params.get`` takes."""

    @property
    def moonhook(self) -> tuple[Entry, ...]:
        return tuple(entry for entries in self.sections.values() for entry in entries)


@cache
def lua_reference() -> Reference:
    table = tomllib.loads(_TABLE.read_text())
    sections = {
        title: tuple(Entry(name, **fields) for name, fields in entries.items())
        for title, entries in table["sections"].items()
    }
    names, limits = table["standard"]["names"].split(), table["standard"]["limits"]
    standard = tuple(
        Entry(name, name, "Standard Lua 5.4.", limits=limits.get(name, "")) for name in names
    )
    return Reference(sections, standard, table["properties"])


def editor_entries() -> list[dict[str, str]]:
    """All entries for completion and the panel, Moonhook's own first; texts are plain."""
    reference = lua_reference()
    return [
        {
            "name": entry.name,
            "signature": entry.signature,
            "explanation": entry.explanation.replace("`", ""),
            "limits": entry.limits.replace("`", ""),
            "example": entry.example,
            "insert": entry.insert or entry.name,
            "words": entry.words,
            "origin": origin,
        }
        for origin, entries in (("Moonhook", reference.moonhook), ("Lua", reference.standard))
        for entry in entries
    ]
