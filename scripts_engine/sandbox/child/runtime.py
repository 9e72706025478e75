"""A fresh Lua state: the only place that touches lupa.

lupa is imported by the name of its Lua version, since its bare module may pick another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lupa import lua54

from scripts_engine.sandbox.child.surface import ALLOWED_NAMES

# Part of every state, in this order: a chunk uses what those before it made.
EAGER_CHUNKS = (
    "boot",
    "arguments",
    "strings",
    "json_values",
    "json_reader",
    "json_writer",
    "metatables",
    "log",
    "params",
    "standard",
    "results",
    "libraries",
    "run",
    "globals",
)
# Asked for by the state itself when a script first needs them.
LATER_CHUNKS = ("audit", "bytes", "failure", "host", "packing", "reply", "time", "trace", "url")
SEED_BYTES = 16
_PRELUDE_FOLDER = Path(__file__).parent / "prelude"

LuaMemoryError = lua54.LuaMemoryError
LuaError = lua54.LuaError

Native = Callable[..., Any]


class UnexpectedGlobals(Exception):
    """The state holds a name that is not on the allow-list, or lacks one that is."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """The Lua side of the platform, compiled once."""

    eager: bytes
    """All chunks that every state begins with, as one."""
    later: Mapping[bytes, bytes]
    """The others, by name."""


def compile_prelude(folder: Path = _PRELUDE_FOLDER) -> Prelude:
    """Read and compile the prelude. Line numbers are stripped: errors point at the script."""
    lua = _new_lua(max_memory_bytes=0)
    dump = lua.eval(b"function(text) return string.dump(assert(load(text, '=prelude')), true) end")

    def read(name: str) -> bytes:
        return (folder / f"{name}.lua").read_bytes()

    # Loading one large chunk takes half the time of loading many; each keeps its own scope, and
    # gets the private table that scripts never see.
    eager = b"local private, native, seed = {}, ...\n%b\nreturn private.call" % b"\n".join(
        b";(function(...)\n%b\nend)(private, native, seed)" % read(name) for name in EAGER_CHUNKS
    )
    return Prelude(
        eager=dump(eager), later={name.encode(): dump(read(name)) for name in LATER_CHUNKS}
    )


class LuaState:
    """One state, good for one run. It must be dropped, never used again."""

    def __init__(self, prelude: Prelude, native: Native, memory_bytes: int) -> None:
        """`native(operation, *values)` serves the prelude.

        It must not lead to this state by any reference: lupa keeps it alive from inside Lua,
        and the cycle would never be freed.
        """
        self._lua = _new_lua(memory_bytes)
        # One function for all: each one that Python holds has its price in every state.
        self._call = self._lua.execute(prelude.eager, native, os.urandom(SEED_BYTES), mode="b")

    def run(self, *arguments: Any) -> Any:
        return self._call(b"run", *arguments)

    def check_syntax(self, source: bytes, chunk_name: bytes) -> Any:
        return self._call(b"check_syntax", source, chunk_name)

    def limit_memory(self, memory_bytes: int) -> None:
        self._lua.set_max_memory(memory_bytes)

    def check_names(self) -> None:
        """Compare all that a script can reach with the allow-list. Raises UnexpectedGlobals."""
        found = frozenset(self._call(b"list_names").decode().split("\n"))
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
