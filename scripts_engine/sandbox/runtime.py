"""A fresh Lua state: the only place that touches lupa.

lupa is imported by the name of its Lua version, since its bare module may pick another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lupa import lua54

from scripts_engine.sandbox.surface import ALLOWED_NAMES

# Loaded into every state, in this order: a chunk uses what those before it made.
EAGER_CHUNKS = (
    "arguments",
    "strings",
    "json_values",
    "json_reader",
    "json_writer",
    "metatables",
    "log",
    "params",
    "standard",
    "reply",
    "libraries",
    "run",
    "globals",
)
# Loaded by the state itself when a script first needs them.
LATER_CHUNKS = ("audit", "bytes", "host", "packing", "time", "trace", "url")
_PRELUDE_FOLDER = Path(__file__).parent / "prelude"

LuaMemoryError = lua54.LuaMemoryError
LuaError = lua54.LuaError

Native = Callable[..., Any]


class UnexpectedGlobals(Exception):
    """The state holds a name that is not on the allow-list, or lacks one that is."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """The Lua side of the platform, compiled once and loaded into every state."""

    boot: bytes
    eager: int
    """How many of the chunks every state loads at once."""
    chunks: tuple[bytes, ...]
    """Name and code, by turns."""


def compile_prelude(folder: Path = _PRELUDE_FOLDER) -> Prelude:
    """Read and compile the prelude. Line numbers are stripped: errors point at the script."""
    lua = _new_lua(max_memory_bytes=0)
    dump = lua.eval(b"function(text) return string.dump(assert(load(text, '=prelude')), true) end")
    chunks: list[bytes] = []
    for name in (*EAGER_CHUNKS, *LATER_CHUNKS):
        chunks += name.encode(), dump((folder / f"{name}.lua").read_bytes())
    boot = dump((folder / "boot.lua").read_bytes())
    return Prelude(boot=boot, eager=len(EAGER_CHUNKS), chunks=tuple(chunks))


class LuaState:
    """One state, good for one run. It must be dropped, never used again."""

    def __init__(self, prelude: Prelude, native: Native, memory_bytes: int) -> None:
        """`native(operation, *values)` serves the prelude.

        It must not lead to this state by any reference: lupa keeps it alive from inside Lua,
        and the cycle would never be freed.
        """
        self._lua = _new_lua(memory_bytes)
        self.run, self.check_syntax, self._list_names = self._lua.execute(
            prelude.boot, native, prelude.eager, *prelude.chunks, mode="b"
        )

    def limit_memory(self, memory_bytes: int) -> None:
        self._lua.set_max_memory(memory_bytes)

    def check_names(self) -> None:
        """Compare all that a script can reach with the allow-list. Raises UnexpectedGlobals."""
        found = frozenset(self._list_names().decode().split("\n"))
        if found != ALLOWED_NAMES:
            unexpected = ", ".join(sorted(found - ALLOWED_NAMES)) or "none"
            missing = ", ".join(sorted(ALLOWED_NAMES - found)) or "none"
            raise UnexpectedGlobals(f"unexpected: {unexpected}; missing: {missing}")


def _new_lua(max_memory_bytes: int) -> lua54.LuaRuntime:
    return lua54.LuaRuntime(
        encoding=None,
        source_encoding="utf-8",
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        attribute_filter=_deny_attribute,
        max_memory=max_memory_bytes,
    )


def _deny_attribute(_owner: object, _name: object, _is_setting: bool) -> str:
    raise AttributeError("attributes of Python objects are not available")
