"""docs/senders.md: as new as the table, and its scripts answer what it says."""

from pathlib import Path

import pytest

from accounts.models import Organisation
from scripts_engine.event import Event
from scripts_engine.flows.author import NOBODY
from scripts_engine.flows.try_script import try_script
from scripts_engine.models import Trigger
from scripts_engine.senders import PRESETS, Refused, Verified
from scripts_engine.senders.markdown import page
from scripts_engine.senders.recipes import RECIPES, Recipe
from scripts_engine.senders.vectors import Vector, shipped_vectors
from tests.factories import make_script
from tests.scripts_engine.senders.signed import outcome_of, with_call

SIGNED = [
    each
    for each in shipped_vectors()
    if each.expected["ok"] and "handshake" not in each.expected and each.rules.preset != "hmac"
]
PAGE = Path(__file__).resolve().parents[3] / "docs" / "senders.md"


def test_the_page_is_as_new_as_the_table() -> None:
    """After a change of scripts_engine/senders, run: manage.py export_senders."""
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_has_a_row_and_the_steps_of_every_sender(name: str) -> None:
    preset = PRESETS[name]

    assert f"| {preset.title} | `{name}` | `{preset.strength}` |" in page()
    assert f"### {preset.title}: set-up\n\n1. {preset.steps[0]}\n" in page()


@pytest.mark.parametrize("signed", SIGNED, ids=lambda vector: vector.id)
def test_the_page_names_the_senders_that_sign_the_query(signed: Vector) -> None:
    [line] = [line for line in page().splitlines() if "`hmac` with `{url}`" in line]
    title = PRESETS[signed.rules.preset].title
    other = with_call(signed, url=f"{signed.call.url}&other=1", query="other=1")

    assert isinstance(outcome_of(signed), Verified)
    assert isinstance(outcome_of(other), Refused) == (title in line)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.sender)
def test_the_script_of_a_recipe_answers_its_call(acme: Organisation, recipe: Recipe) -> None:
    event = Event("POST", "", recipe.headers, recipe.body.encode(), "")
    script = make_script(acme, recipe.script)

    run = try_script(script, event=event, author=NOBODY, trigger=Trigger.ADMIN)

    assert run.error_message == ""
    assert bytes(run.response_body).decode() == recipe.reply
