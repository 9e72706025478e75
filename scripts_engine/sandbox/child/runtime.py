"""Creates Lua states from the compiled prelude, and lists all that a script can reach in one.

The only module that uses lupa.

Role in a run: a child has a state ready when the run arrives, and renews or discards it afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lupa import lua54

_FUNCTIONS = """
Fail FromJson Reply Retry ToJson array assert error getmetatable inspect ipairs next object pairs
pcall print rawequal rawget rawlen rawset require select setmetatable tonumber tostring type xpcall
<string>.<metatable>.__add <string>.<metatable>.__div <string>.<metatable>.__idiv
<string>.<metatable>.__mod <string>.<metatable>.__mul <string>.<metatable>.__pow
<string>.<metatable>.__sub <string>.<metatable>.__unm null.<metatable>.__index
null.<metatable>.__newindex null.<metatable>.__tostring
base64.decode base64.encode base64.urldecode base64.urlencode
coroutine.close coroutine.create coroutine.isyieldable coroutine.resume coroutine.running
coroutine.status coroutine.wrap coroutine.yield
crypto.equals crypto.hmac_sha1 crypto.hmac_sha256 crypto.hmac_sha512 crypto.md5
crypto.random_hex crypto.sha1 crypto.sha256 crypto.sha512
hex.decode hex.encode
html.escape
http.delete http.get http.head http.patch http.post http.put http.request
log.debug log.error log.info log.warn
math.abs math.acos math.asin math.atan math.ceil math.cos math.deg math.exp math.floor
math.fmod math.log math.max math.min math.modf math.rad math.random math.randomseed math.sin
math.sqrt math.tan math.tointeger math.type math.ult
os.clock os.date os.difftime os.time
params.form params.get params.header params.json params.query
queue.push
secrets.get
store.delete store.get store.increment store.list store.set store.set_if_absent
string.byte string.char string.find string.format string.gmatch string.gsub string.len
string.lower string.match string.pack string.packsize string.rep string.reverse string.split
string.sub string.trim string.unpack string.upper
table.concat table.insert table.move table.pack table.remove table.sort table.unpack
time.add time.format time.in_zone time.now time.parse
url.build_query url.decode url.encode url.parse url.parse_query
utf8.char utf8.codepoint utf8.codes utf8.len utf8.offset
uuid.v4
"""
_TABLES = """
_G base64 coroutine crypto hex html http log math null os params queue secrets store string table
time url utf8 uuid <string>.<metatable>.__index
"""
_NUMBERS = "math.huge math.maxinteger math.mininteger math.pi"
_STRINGS = "_VERSION null.<metatable>.__name utf8.charpattern"
_BOOLEANS = "<string>.<metatable>.__metatable null.<metatable>.__metatable"
# "name type", as the prelude prints them.
ALLOWED_NAMES = frozenset(
    f"{name} {kind}"
    for names, kind in (
        (_FUNCTIONS, "function"),
        (_TABLES, "table"),
        (_NUMBERS, "number"),
        (_STRINGS, "string"),
        (_BOOLEANS, "boolean"),
    )
    for name in names.split()
)
# Loaded once into a state, in this order: a chunk uses those before it.
STATE_CHUNKS = ("boot", "json_values", "standard", "libraries", "runs")
# Executed again for each run, so that nothing in them outlives it.
RUN_CHUNKS = (
    "calls",
    "json_reader",
    "json_writer",
    "log",
    "params",
    "results",
    "run",
)
# Loaded on first use: each chunk with its functions; "crypto." stands for a library.
LATER_CHUNKS = {
    "audit": "list_names",
    "body": "params.",
    "bytes": "base64. crypto. hex. uuid.",
    "calendar": "time.add time.in_zone",
    "failure": "size_of_reply",
    "global_uses": "list_globals",
    "host": "http. queue. secrets. store.",
    "inspect": "inspect table_in_log",
    "json_problem": "place_in_json unexpected_in_json with_path_in_json",
    "packing": "",
    "reply": "Reply",
    "require": "require",
    "text": "html. string.",
    "time": "time.",
    "trace": "",
    "url": "url.",
    "url_parts": "url.parse url.build_query",
    "verdict": "Fail Retry",
}
SEED_BYTES = 16
# Memory above a script's limit, for the prelude and lupa when the script has used up its own.
MEMORY_RESERVE_BYTES = 256 * 1024
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
    """STATE_CHUNKS and RUN_CHUNKS as one chunk."""
    later: Mapping[bytes, bytes]
    """LATER_CHUNKS, by the name of a chunk or of a function in it. Each returns a function that
    makes the chunk's functions for a run, in its `private` table."""


def compile_prelude(folder: Path = _PRELUDE_FOLDER) -> Prelude:
    """Read and compile the prelude, without line numbers, so that errors point at the script."""
    lua = _new_lua(max_memory_bytes=0)
    dump = lua.eval(b"function(text) return string.dump(assert(load(text, '=prelude')), true) end")

    def read(name: str) -> bytes:
        return (folder / f"{name}.lua").read_bytes()

    # One large chunk loads in half the time of many. Each part keeps its own scope, and gets the
    # table `shared` or `private`, which scripts never see.
    eager = b"""
        local native, seed = ...
        local shared = { python_function = native, new_environment = %b }
        function shared.load_run(_ENV, private) %b end
        %b
        return shared.call
    """ % (
        _environment_constructor(),
        b"\n".join(b";(function(...)\n%b\nend)(private)" % read(name) for name in RUN_CHUNKS),
        b"\n".join(
            b";(function(...)\n%b\nend)(shared, seed)" % read(name) for name in STATE_CHUNKS
        ),
    )
    later = LaterChunks()
    for chunk, functions in LATER_CHUNKS.items():
        compiled = dump(b"return function(...)\n%b\nend" % read(chunk))
        later.update((name.encode(), compiled) for name in (chunk, *functions.split()))
    return Prelude(eager=dump(eager), later=later)


def _environment_constructor() -> bytes:
    """The Lua source of a function that copies all that a script may reach from a table of globals.

    It names each value of the allow-list, since that takes a third of the time of a loop.
    """
    libraries: dict[str, list[str]] = {}
    values: list[str] = []
    for name in sorted(entry.split()[0] for entry in ALLOWED_NAMES):
        library, dot, member = name.partition(".")
        if name.startswith("<") or "<" in member:
            continue  # Of a metatable, which is not a global.
        if dot:
            libraries.setdefault(library, []).append(member)
        else:
            values.append(name)
    fields = [f"{name} = pristine.{name}" for name in values if name not in libraries]
    for library, members in libraries.items():
        copies = ", ".join(f"{member} = {library}.{member}" for member in members)
        fields.append(f"{library} = {{ {copies} }}")
    names = ", ".join(libraries)
    tables = ", ".join(f"pristine.{library}" for library in libraries)
    text = f"function(pristine) local {names} = {tables} return {{ {', '.join(fields)} }} end"
    return text.encode()


class LuaState:
    """A Lua state, in which one run follows another.

    A run has an environment of its own, and the prelude's functions are made again for it where
    they hold anything of a run; `prelude/runs.lua` tells what runs share. `serving.py` decides
    whether the next may follow at all.
    """

    def __init__(self, prelude: Prelude, native: Native, memory_bytes: int) -> None:
        """`native(operation, room_bytes, *values)` serves the prelude.

        It must not refer to this state, even indirectly: Lua keeps it alive, and Python could
        never free the cycle.
        """
        self._lua = _new_lua(memory_bytes)
        # One function for all calls, since each that Python holds slows every new state down.
        self._call = self._lua.execute(prelude.eager, native, os.urandom(SEED_BYTES), mode="b")
        self._growth_bytes = 0
        self._bytes_before_run = self._lua.get_memory_used()
        self.runs = 0
        """How many runs have ended in this state and left it to the next."""

    def run(
        self,
        source: bytes,
        chunk_name: bytes,
        requires: bytes,
        is_traced: bool,
        memory_bytes: int,
        *limits: int,
    ) -> Any:
        """The fields of an outcome.

        `requires` are names and keys of libraries, packed; `limits` are the others, as in
        `Limits.as_run_arguments`.
        """
        memory_bytes += self._growth_bytes
        self._lua.set_max_memory(memory_bytes + MEMORY_RESERVE_BYTES)
        return self._call(b"run", source, chunk_name, requires, is_traced, memory_bytes, *limits)

    def check_syntax(self, source: bytes, chunk_name: bytes) -> Any:
        return self._call(b"check_syntax", source, chunk_name)

    def list_globals(self, source: bytes) -> Any:
        return self._call(b"list_globals", source)

    def bytes_of_run(self) -> int:
        """The memory that the run has taken and not given back."""
        used: int = self._lua.get_memory_used()
        return used - self._bytes_before_run

    def cost_of_compiling(self) -> tuple[float, float]:
        """The bytes and the CPU seconds that the run has spent on compiling."""
        cost: tuple[float, float] = self._call(b"cost_of_compiling")
        return cost

    def renew(self) -> None:
        """Drop all that is left of the last run, and prepare the next."""
        self._growth_bytes = self._call(b"renew", os.urandom(SEED_BYTES))
        self._bytes_before_run = self._lua.get_memory_used()
        self.runs += 1

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
