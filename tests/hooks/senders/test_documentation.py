"""docs/senders.md: as new as the table, and its scripts answer what it says."""

import pytest

from accounts.models import Organisation
from docs.tools.senders import PAGE, Recipe, page, read_recipes
from hooks.senders import PRESETS, Refusal, Vector, Verified, shipped_vectors
from scripts_engine.models import Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Event
from tests.factories import make_script
from tests.hooks.senders.signed import outcome_of, with_call

SIGNED = [
    each
    for each in shipped_vectors()
    if each.expected["ok"] and "handshake" not in each.expected and each.rules.preset != "hmac"
]


def test_the_page_is_as_new_as_the_table() -> None:
    """After a change of hooks/senders, run: python -m docs.tools.senders."""
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
    assert isinstance(outcome_of(other), Refusal) == (title in line)


@pytest.mark.parametrize("recipe", read_recipes(), ids=lambda recipe: recipe.sender)
def test_the_script_of_a_recipe_answers_its_call(acme: Organisation, recipe: Recipe) -> None:
    event = Event("POST", "", tuple(recipe.headers.items()), recipe.body.encode(), "")
    script = make_script(acme, recipe.script)

    run = try_script(script, event=event, author=NOBODY, trigger=Trigger.ADMIN)

    assert run.error_message == ""
    assert bytes(run.response_body).decode() == recipe.reply
