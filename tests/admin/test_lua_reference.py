"""The editor's completions and the sandbox know the same names."""

from scripts_engine.admin.scripts.lua_reference import MOONHOOK, STANDARD
from scripts_engine.sandbox.child.surface import ALLOWED_NAMES


def test_every_name_that_is_completed_is_there() -> None:
    there = {name.split()[0] for name in ALLOWED_NAMES}

    assert {entry.name for entry in (*MOONHOOK, *STANDARD)} - there == set()


def test_every_name_that_is_there_is_completed() -> None:
    there = {
        name
        for name, kind in (entry.split() for entry in ALLOWED_NAMES)
        if kind != "table" and "<metatable>" not in name
    }

    assert there - {entry.name for entry in (*MOONHOOK, *STANDARD)} == set()
