"""Writes the Lua definitions that the client's `init` puts into folders, from the Lua reference.

    python -m docs.tools.lua_definitions

The Lua language server reads them, so that it knows the names of scripts.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from scripts_engine.lua_reference import Entry, lua_reference

FILE = (
    Path(__file__).resolve().parents[2] / "client" / "moonhook_cli" / "templates" / "moonhook.lua"
)
_CALL = re.compile(r"\((.*)\)$")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Tables of Lua itself, to which Moonhook adds functions.
_LUAS_OWN = {"string"}


def definitions() -> str:
    entries = lua_reference().moonhook
    tables = dict.fromkeys(entry.name.partition(".")[0] for entry in entries if "." in entry.name)
    lines = ["---@meta", "-- What scripts can use on a Moonhook server.", ""]
    for table in tables:
        lines.append(f"---@class moonhook.{table}")
        lines += [] if table in _LUAS_OWN else [f"{table} = {{}}"]
        lines.append("")
    for entry in entries:
        lines += [*_entry(entry), ""]
    return "\n".join(lines)


def _entry(entry: Entry) -> Iterator[str]:
    yield f"---{entry.explanation}"
    if entry.limits:
        yield "---"
        yield f"---{entry.limits}"
    yield "---"
    yield f"---`{entry.signature}`"
    if entry.signature == entry.name:
        yield "---@type any"
        yield f"{entry.name} = {{}}"
        return
    parameters = list(_parameters(entry.signature))
    for name, is_optional in parameters:
        yield f"---@param {name}{'?' if is_optional else ''} any"
    yield "---@return any"
    yield f"function {entry.name}({', '.join(name for name, _ in parameters)}) end"


def _parameters(signature: str) -> Iterator[tuple[str, bool]]:
    """Name and whether it is optional; a table of options is one named `options`."""
    called = _CALL.search(signature)
    if called is None:
        yield "options", False
        return
    for is_optional, text in enumerate(called[1].split("[", 1)):
        names, table, _ = text.partition("{")
        for part in re.split(r"[\s\[\],]+", names):
            if _NAME.fullmatch(part):
                yield part, bool(is_optional)
            elif part == "…":
                yield "...", False
            elif part.startswith('"'):
                yield "name", bool(is_optional)
        if table:
            yield "options", bool(is_optional)


if __name__ == "__main__":
    FILE.write_text(definitions(), encoding="utf-8")
