"""The editor completes exactly the names that the sandbox offers."""

from scripts_engine.admin.scripts.lua_reference import MOONHOOK, STANDARD
from scripts_engine.sandbox.child.surface import ALLOWED_NAMES


def test_every_completed_name_exists() -> None:
    there = {name.split()[0] for name in ALLOWED_NAMES}

    assert {entry.name for entry in (*MOONHOOK, *STANDARD)} - there == set()


def test_every_existing_name_is_completed() -> None:
    there = {
        name
        for name, kind in (entry.split() for entry in ALLOWED_NAMES)
        if kind != "table" and "<metatable>" not in name
    }

    assert there - {entry.name for entry in (*MOONHOOK, *STANDARD)} == set()
