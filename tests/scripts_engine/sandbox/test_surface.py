"""The audit of the names that a script can reach, before any child may serve."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts_engine.sandbox.child import runtime
from scripts_engine.sandbox.child.runtime import LuaState, UnexpectedGlobals, compile_prelude
from scripts_engine.sandbox.contract import Job
from scripts_engine.sandbox.parent import child_process
from scripts_engine.sandbox.parent.pool import SandboxPool, SandboxUnavailable


@pytest.fixture
def prelude_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(Path(runtime.__file__).parent / "prelude", tmp_path / "prelude"))


def audit(folder: Path) -> None:
    prelude = compile_prelude(folder)

    def native(operation: bytes, _room: float, *values: bytes) -> bytes:
        assert operation == b"chunk"
        return prelude.later[values[0]]

    LuaState(prelude, native, 2**26).check_names()


def test_the_prelude_as_it_is_passes_the_audit(prelude_copy):
    audit(prelude_copy)


@pytest.mark.parametrize(
    ("addition", "name"),
    [
        ("surprise = 1", "surprise number"),
        ("string.surprise = print", "string.surprise function"),
        ("http.deep = {er = {}}", "http.deep.er table"),
        ("setmetatable(_G, {__index = {}})", "<metatable>.__index table"),
        ("private.debug.getmetatable('').__gc = print", "<string>.<metatable>.__gc function"),
        ("private.debug.setmetatable(0, {__call = print})", "<metatable>.__call function"),
        ("_G.debug = private.debug", "debug.sethook function"),
        ("string.rep = nil", "missing: string.rep function"),
        ("null = nil", "null.<metatable>.__index"),
    ],
)
def test_any_other_name_fails_the_audit(prelude_copy, addition, name):
    chunk = prelude_copy / "run.lua"
    chunk.write_text(f"{chunk.read_text()}\nlocal private = ...\n{addition}\n")
    with pytest.raises(UnexpectedGlobals, match="unexpected: ") as refusal:
        audit(prelude_copy)
    assert name in str(refusal.value)


# Starts the fork server as the worker does, with the prelude of another folder.
START_WITH_PRELUDE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from scripts_engine.sandbox.child import fork_server, runtime
fork_server.compile_prelude = lambda: runtime.compile_prelude(Path(%r))
fork_server.main(int(sys.argv[2]))
"""


def test_no_child_serves_with_an_unexpected_name(prelude_copy, monkeypatch):
    chunk = prelude_copy / "run.lua"
    chunk.write_text(f"{chunk.read_text()}\nsurprise = 1\n")
    monkeypatch.setattr(child_process, "_START", START_WITH_PRELUDE % str(prelude_copy))
    pool = SandboxPool(size=1)
    try:
        for _ in range(2):
            with pytest.raises(SandboxUnavailable, match=r"refuses to serve.*surprise number"):
                pool.run("acme", Job(source=b"return 1", chunk_name="script", params={}))
        assert pool.stats().children == 0
    finally:
        pool.close()


def test_every_chunk_of_the_folder_is_loaded():
    folder = Path(runtime.__file__).parent / "prelude"
    named = {*runtime.STATE_CHUNKS, *runtime.RUN_CHUNKS, *runtime.LATER_CHUNKS}
    assert {path.stem for path in folder.glob("*.lua")} == named
