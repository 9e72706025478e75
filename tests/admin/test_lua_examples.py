"""The examples of the reference panel run in the real sandbox."""

import pytest

from accounts.models import Organisation
from scripts_engine.admin.scripts.lua_examples import EXAMPLES, reference
from scripts_engine.admin.scripts.lua_reference import MOONHOOK
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY
from scripts_engine.flows.try_script import try_script
from scripts_engine.models import Script, Trigger
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def script(acme: Organisation) -> Script:
    return factories.make_script(acme)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(script: Script, name: str) -> None:
    event = Event("POST", "page=2", (), b'{"id": 7}', "")

    run = try_script(
        script, event=event, author=NOBODY, trigger=Trigger.ADMIN, source=EXAMPLES[name]
    )

    assert run.error_message == ""
    assert name in EXAMPLES[name]


def test_every_entry_has_an_example() -> None:
    assert EXAMPLES.keys() == {entry.name for entry in MOONHOOK}


def test_the_reference_has_each_entry_with_its_example() -> None:
    by_name = {entry["name"]: entry for entry in reference()}

    assert by_name["uuid.v4"]["example"] == "local id = uuid.v4()"
    assert by_name["string.rep"]["example"] == ""
