"""The Lua reference: complete, true, and the one source of the editor's panel and docs/lua.md."""

from collections.abc import Iterable

import pytest
from django.test import Client

from accounts.models import Organisation
from docs.tools import lua_definitions
from docs.tools.lua import PAGE, names_of_tables, tables, with_tables
from scripts_engine.lua_reference import Entry, editor_entries, lua_reference
from scripts_engine.models import Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Event
from scripts_engine.sandbox.child.runtime import ALLOWED_NAMES
from tests import factories

REFERENCE = lua_reference()
MOONHOOK, STANDARD, PROPERTIES = REFERENCE.moonhook, REFERENCE.standard, REFERENCE.properties


def names_of(entries: Iterable[Entry]) -> list[str]:
    return [entry.name for entry in entries]


# --- The names -----------------------------------------------------------------------------------


def test_every_name_exists_in_the_sandbox() -> None:
    there = {name.split()[0] for name in ALLOWED_NAMES}

    assert set(names_of((*MOONHOOK, *STANDARD))) - there == set()


def test_every_name_of_the_sandbox_has_an_entry() -> None:
    there = {
        name
        for name, kind in (entry.split() for entry in ALLOWED_NAMES)
        if kind != "table" and "<metatable>" not in name
    }

    assert there - set(names_of((*MOONHOOK, *STANDARD))) == set()


def test_no_name_has_two_entries() -> None:
    names = names_of((*MOONHOOK, *STANDARD))

    assert len(set(names)) == len(names)


def test_the_entry_of_params_get_names_every_property() -> None:
    [get] = [entry for entry in MOONHOOK if entry.name == "params.get"]

    assert get.explanation.partition(": ")[2] == f"{', '.join(f'`{name}`' for name in PROPERTIES)}."


def test_a_plain_call_has_every_property_but_those_of_senders_and_schedules(
    client: Client, acme: Organisation
) -> None:
    names = ", ".join(f'"{name}"' for name in (*PROPERTIES, "nonsense"))
    script = factories.make_script(
        acme,
        f"local missing = array{{}} for _, name in ipairs{{{names}}} do "
        "if not params.get(name) then table.insert(missing, name) end end return missing",
    )
    issued = factories.make_hook(script)

    response = client.post(f"/hook/{acme.pk}/{script.pk}/{issued.call_token}?page=2", {"id": "7"})

    assert response.json() == [
        "path",
        "sender",
        "verified",
        "event_id",
        "scheduled_at",
        "nonsense",
    ]


# --- The examples --------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", MOONHOOK, ids=lambda entry: entry.name)
def test_an_example_uses_its_name_and_runs(acme: Organisation, entry: Entry) -> None:
    script = factories.make_script(acme)
    factories.make_script(acme, name="ship")
    factories.make_script(acme, "return {}", "money", is_library=True)
    event = Event("POST", "page=2", (), b'{"id": 7}', "")

    run = try_script(
        script, event=event, author=NOBODY, trigger=Trigger.ADMIN, source=entry.example
    )

    assert run.error_message == ""
    assert entry.name in entry.example


# --- The panel and the page ----------------------------------------------------------------------


def test_the_panel_shows_every_entry_as_plain_text() -> None:
    shown = {entry["name"]: entry for entry in editor_entries()}

    assert list(shown) == names_of((*MOONHOOK, *STANDARD))
    assert shown["uuid.v4"]["example"] == "local id = uuid.v4()"
    assert shown["params.json"]["limits"] == "Raises the same errors as FromJson."
    assert shown["string.rep"]["origin"] == "Lua"


def test_the_page_marks_each_table_once() -> None:
    assert sorted(names_of_tables(PAGE.read_text())) == sorted(tables())


def test_the_page_has_the_tables_of_the_reference() -> None:
    """After a change of the reference, run: python -m docs.tools.lua."""
    page = PAGE.read_text()

    assert with_tables(page) == page


def test_the_definitions_of_the_client_are_those_of_the_reference() -> None:
    assert lua_definitions.FILE.read_text() == lua_definitions.definitions()


def test_a_table_is_replaced_and_prose_is_kept() -> None:
    page = "Before.\n<!-- generated: secrets -->\nold\n<!-- end of generated -->\nAfter.\n"

    made = with_tables(page)

    assert made.startswith("Before.\n")
    assert made.endswith("<!-- end of generated -->\nAfter.\n")
    assert "| `secrets.get(name)` |" in made
    assert "old" not in made


def test_an_unknown_table_is_an_error() -> None:
    with pytest.raises(KeyError, match="no such"):
        with_tables("<!-- generated: no such -->\n<!-- end of generated -->\n")
