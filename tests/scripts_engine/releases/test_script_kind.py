"""Scripts as a kind: many states at once, names passed on, and words for people."""

import uuid
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from accounts.models import Organisation
from core.http.origin import NOWHERE
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Release, Script
from scripts_engine.releases.kinds import State
from scripts_engine.releases.recording import releasing
from scripts_engine.releases.script_kind import SCRIPTS
from tests.factories import NOBODY, make_script

pytestmark = pytest.mark.django_db


def put(organisation: Organisation, states: dict[uuid.UUID, State | None]) -> None:
    with releasing(organisation.pk, NOWHERE) as changes:
        changes.watch(SCRIPTS, states)
        SCRIPTS.put(organisation, states, origin=NOWHERE)


def states_of(organisation: Organisation, *scripts: Script) -> dict[uuid.UUID, State]:
    return SCRIPTS.states(organisation, [script.pk for script in scripts])


def test_scripts_exchange_their_names_in_one_release(acme: Organisation) -> None:
    one, two, three = (make_script(acme, name=name) for name in ("one", "two", "three"))
    states = states_of(acme, one, two, three)
    put(
        acme,
        {
            one.pk: states[one.pk] | {"name": "TWO"},
            two.pk: states[two.pk] | {"name": "one"},
            three.pk: None,
        },
    )

    names = dict(Script.objects.existing().values_list("pk", "name_key"))
    assert names == {one.pk: "two", two.pk: "one"}
    assert [change.action for change in Release.objects.first().changes.all()].count("Rename") == 2  # type: ignore[union-attr]


def test_a_script_takes_the_name_of_one_that_is_deleted_with_it(acme: Organisation) -> None:
    one, two = make_script(acme, name="one"), make_script(acme, name="two")
    put(acme, {one.pk: states_of(acme, one)[one.pk] | {"name": "two"}, two.pk: None})

    assert Script.objects.existing().get().name == "two"


def test_two_states_of_one_name_are_refused(acme: Organisation) -> None:
    one, two = make_script(acme, name="one"), make_script(acme, name="two")
    states = states_of(acme, one, two)

    with pytest.raises(ValidationError) as refused:
        put(acme, {pk: state | {"name": "Three"} for pk, state in states.items()})

    assert list(refused.value.message_dict) == ["name"]
    assert states_of(acme, one, two) == states


def test_a_refusal_of_several_names_the_script(acme: Organisation) -> None:
    one, two = make_script(acme, name="one"), make_script(acme, name="two")
    states = states_of(acme, one, two)
    wrong = {one.pk: {"enabled": False}, two.pk: {"timeoutSeconds": 26.0}}

    with pytest.raises(ValidationError) as refused:
        put(acme, {pk: states[pk] | change for pk, change in wrong.items()})

    assert refused.value.message_dict == {
        "timeout_seconds": ["“two”: Ensure this value is less than or equal to 25.0."]
    }
    assert states_of(acme, one, two) == states


def test_a_script_does_not_become_a_library(acme: Organisation, script: Script) -> None:
    state = states_of(acme, script)[script.pk]

    with pytest.raises(ValidationError) as refused:
        put(acme, {script.pk: state | {"library": True}})

    assert list(refused.value.message_dict) == ["library"]
    assert not Script.objects.get().is_library


def test_a_version_of_another_script_does_not_go_live(
    acme: Organisation, globex: Organisation, script: Script
) -> None:
    foreign = make_script(globex).versions.get()
    state = states_of(acme, script)[script.pk]

    with pytest.raises(ValidationError) as refused:
        put(acme, {script.pk: state | {"version": str(foreign.pk)}})

    assert list(refused.value.message_dict) == ["version"]
    assert states_of(acme, script)[script.pk] == state


def test_another_organisations_script_is_neither_read_nor_changed(
    acme: Organisation, globex: Organisation
) -> None:
    foreign = make_script(globex)
    state = states_of(globex, foreign)[foreign.pk]

    assert states_of(acme, foreign) == {}
    put(acme, {foreign.pk: None})
    with pytest.raises(Exception, match=r"(?i)unique|version"):
        put(acme, {foreign.pk: state | {"name": "mine"}})

    assert states_of(globex, foreign)[foreign.pk] == state


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "new"}, "Renamed from “echo” to “new”."),
        ({"is_enabled": False}, "Disabled."),
        ({"timeout_seconds": 2.5}, "Time limit: 10 s → 2.5 s."),
        ({"max_concurrent_runs": 1500}, "Concurrent runs: unlimited → 1,500."),
        (
            {"source": "return 2"},
            '--- version 1\n+++ version 2\n@@ -1 +1 @@\n-return params.get("body")\n+return 2',
        ),
    ],
)
def test_a_difference_is_told_in_words(
    acme: Organisation, script: Script, changes: dict[str, Any], words: str
) -> None:
    before = states_of(acme, script)[script.pk]
    update_script(script, author=NOBODY, **changes)

    assert SCRIPTS.difference(acme, before, states_of(acme, script)[script.pk]) == words


def test_creation_and_deletion_are_told_in_words(acme: Organisation, script: Script) -> None:
    state = states_of(acme, script)[script.pk]

    assert SCRIPTS.difference(acme, None, state).splitlines()[:2] == ["Created.", "--- nothing"]
    assert SCRIPTS.difference(acme, state, None) == "Deleted."


def test_a_difference_shows_no_other_organisations_source(
    acme: Organisation, globex: Organisation, script: Script
) -> None:
    foreign = make_script(globex, "return 'secret'").versions.get()
    state = states_of(acme, script)[script.pk]

    assert "secret" not in SCRIPTS.difference(acme, None, state | {"version": str(foreign.pk)})
