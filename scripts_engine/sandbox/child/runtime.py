"""Creates the Lua state of a run, from the compiled prelude. The only module that uses lupa.

Role in a run: a child has a state ready when the run arrives, and discards it afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# By the version's name: `import lupa` may load another version of Lua.
from lupa import lua54

from scripts_engine.sandbox.child.surface import ALLOWED_NAMES

# Loaded into every state, in this order: a chunk uses those before it.
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
# Loaded on first use: each chunk with its functions; "crypto." stands for a library.
LATER_CHUNKS = {
    "audit": "list_names",
    "body": "params.",
    "bytes": "base64. crypto. hex. uuid.",
    "calendar": "time.add time.in_zone",
    "failure": "",
    "host": "http. secrets. store.",
    "inspect": "inspect table_in_log",
    "json_problem": "place_in_json unexpected_in_json with_path_in_json",
    "listing": "list_globals",
    "packing": "",
    "reply": "Reply",
    "reply_size": "size_of_reply",
    "text": "html. string.",
    "time": "time.",
    "trace": "",
    "url": "url.",
    "url_parts": "url.parse url.build_query",
}
SEED_BYTES = 16
_PRELUDE_FOLDER = Path(__file__).parent / "prelude"

LuaMemoryError = lua54.LuaMemoryError
LuaError = lua54.LuaError

Native = Callable[..., Any]


class UnexpectedGlobals(Exception):
    """The names that a script can reach differ from the allow-list."""


class LaterChunks(dict[bytes, bytes]):
    """Compiled chunks by their names, the functions in them and "library."."""

    def __missing__(self, function: bytes) -> bytes:
        library, dot, name = function.partition(b".")
        if not dot or not name:
            raise KeyError(function)
        self[function] = found = self[library + dot]
        return found


@dataclass(frozen=True, slots=True)
class Prelude:
    """The Lua side of the platform, compiled once in the fork server."""

    eager: bytes
    """EAGER_CHUNKS as one chunk."""
    later: Mapping[bytes, bytes]
    """LATER_CHUNKS, by the name of a chunk or of a function in it."""


def compile_prelude(folder: Path = _PRELUDE_FOLDER) -> Prelude:
    """Read and compile the prelude, without line numbers, so that errors point at the script."""
    lua = _new_lua(max_memory_bytes=0)
    dump = lua.eval(b"function(text) return string.dump(assert(load(text, '=prelude')), true) end")

    def read(name: str) -> bytes:
        return (folder / f"{name}.lua").read_bytes()

    # One large chunk loads in half the time of many. Each part keeps its own scope, and gets the
    # `private` table, which scripts never see.
    eager = b"local private, native, seed = {}, ...\n%b\nreturn private.call" % b"\n".join(
        b";(function(...)\n%b\nend)(private, native, seed)" % read(name) for name in EAGER_CHUNKS
    )
    later = LaterChunks()
    for chunk, functions in LATER_CHUNKS.items():
        compiled = dump(read(chunk))
        later.update((name.encode(), compiled) for name in (chunk, *functions.split()))
    return Prelude(eager=dump(eager), later=later)


class LuaState:
    """A Lua state for one run. Never used again, or the next run would see its globals."""

    def __init__(self, prelude: Prelude, native: Native, memory_bytes: int) -> None:
        """`native(operation, room_bytes, *values)` serves the prelude.

        It must not refer to this state, even indirectly: Lua keeps it alive, and Python could
        never free the cycle.
        """
        self._lua = _new_lua(memory_bytes)
        # One function for all calls, since each that Python holds slows every new state down.
        self._call = self._lua.execute(prelude.eager, native, os.urandom(SEED_BYTES), mode="b")

    def run(self, *arguments: Any) -> Any:
        return self._call(b"run", *arguments)

    def check_syntax(self, source: bytes, chunk_name: bytes) -> Any:
        return self._call(b"check_syntax", source, chunk_name)

    def list_globals(self, source: bytes) -> Any:
        return self._call(b"list_globals", source)

    def limit_memory(self, memory_bytes: int) -> None:
        self._lua.set_max_memory(memory_bytes)

    def check_names(self) -> None:
        """Compare the names that a script can reach with the allow-list.

        Raises UnexpectedGlobals.
        """
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
