"""Programs that change hooks, schedules and secrets: revisions, names, libraries, and releases."""

from typing import Any

import pytest

from accounts.models import AuthEvent, Organisation
from hooks.models import Hook
from jobs.models import QueueEntry, Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.models import Release, Script, Secret
from scripts_engine.secrets import set_secret
from tests.factories import GraphQLAnswer, admin_graphql

UPDATE_HOOK = """
    mutation ($id: ID!, $expected: Int) {
        updateHook(id: $id, callsPerMinute: 60, expectedRevision: $expected) { revision }
    }
"""
SET_SENDER = """
    mutation ($id: ID!, $expected: Int) {
        setSender(hook: $id, sender: "github", expectedRevision: $expected) { revision }
    }
"""
UPDATE_SCHEDULE = """
    mutation ($id: ID!, $expected: Int) {
        updateSchedule(id: $id, cron: "0 1 * * *", expectedRevision: $expected) { revision }
    }
"""
SET_SECRET = """
    mutation ($id: String!, $expected: Int) {
        setSecret(name: $id, value: "new", expectedRevision: $expected) { revision }
    }
"""


def state() -> list[Any]:
    """What a refused mutation must leave."""
    models = (Hook, Schedule, Secret, Release, QueueEntry, AuthEvent)
    return [list(model.objects.order_by("pk").values()) for model in models]


@pytest.fixture
def ids(hook: Hook) -> dict[str, str]:
    """The id of a row for each mutation; each row has revision 1."""
    schedule = create_schedule(hook.script, cron="0 0 * * *")
    set_secret(hook.organisation, name="KEY", value="old")
    return {
        UPDATE_HOOK: str(hook.pk),
        SET_SENDER: str(hook.pk),
        UPDATE_SCHEDULE: str(schedule.pk),
        SET_SECRET: "KEY",
    }


@pytest.mark.parametrize("mutation", [UPDATE_HOOK, SET_SENDER, UPDATE_SCHEDULE, SET_SECRET])
def test_a_change_needs_the_revision_that_is_expected(
    acme_token: str, ids: dict[str, str], mutation: str
) -> None:
    def change(expected: int | None) -> GraphQLAnswer:
        return admin_graphql(mutation, acme_token, id=ids[mutation], expected=expected)

    before = state()
    refused = change(2)
    assert (refused.status, refused.code) == (200, "CONFLICT")
    assert {"by", "at"} <= refused.errors[0]["extensions"].keys()
    assert "was changed by" in refused.errors[0]["message"]
    assert state() == before

    (changed,) = change(1).data.values()
    assert changed == {"revision": 2}
    assert change(1).code == "CONFLICT"
    assert change(None).errors == []


def test_a_secret_that_is_gone_is_not_created_again(acme_token: str, acme: Organisation) -> None:
    before = state()

    answer = admin_graphql(SET_SECRET, acme_token, id="KEY", expected=1)

    assert answer.code == "NOT_FOUND"
    assert state() == before


@pytest.mark.parametrize(
    "mutation",
    [
        'createHook(script: "{script}", name: "Shop") {{ callToken }}',
        'updateHook(id: "{other}", name: "SHOP") {{ name }}',
        'createSchedule(script: "{script}", cron: "* * * * *", name: "NIGHTLY") {{ id }}',
    ],
)
def test_a_name_that_exists_is_refused(acme_token: str, hook: Hook, mutation: str) -> None:
    answer = admin_graphql(
        f'mutation {{ createHook(script: "{hook.script_id}") {{ hook {{ id name }} }} }}',
        acme_token,
    )
    other = answer.data["createHook"]["hook"]
    assert other["name"] == "Hook"
    create_schedule(hook.script, name="nightly", cron="0 0 * * *")
    before = state()
    document = mutation.format(script=hook.script_id, other=other["id"])

    refused = admin_graphql(f"mutation {{ {document} }}", acme_token)

    assert refused.code == "BAD_USER_INPUT"
    assert refused.errors[0]["extensions"]["field"] == "name"
    assert state() == before


@pytest.mark.parametrize(
    "mutation",
    [
        'createHook(script: "{script}") {{ callToken }}',
        'createSchedule(script: "{script}", cron: "* * * * *") {{ id }}',
        'updateSchedule(id: "{schedule}", script: "{script}") {{ id }}',
        'enqueueRun(script: "{script}") {{ id }}',
    ],
)
def test_a_library_is_refused(acme_token: str, script: Script, mutation: str) -> None:
    schedule = create_schedule(script, cron="0 0 * * *")
    library = Script.objects.create(organisation=script.organisation, name="money", is_library=True)
    before = state()
    document = mutation.format(script=library.pk, schedule=schedule.pk)

    refused = admin_graphql(f"mutation {{ {document} }}", acme_token)

    assert refused.code == "BAD_USER_INPUT"
    assert refused.errors[0]["extensions"]["field"] == "script"
    assert state() == before


def test_a_mutation_is_one_release_of_its_key(acme_token: str, hook: Hook) -> None:
    releases = Release.objects.count()

    answer = admin_graphql(
        f'mutation {{ updateHook(id: "{hook.pk}", name: "store", enabled: false, burst: 2) '
        "{ revision } }",
        acme_token,
    )

    assert answer.data["updateHook"]["revision"] == 2
    assert Release.objects.count() == releases + 1
    release = Release.objects.order_by("-number")[0]
    assert release.actor_kind == "api-key"
    assert release.changes.get().after["name"] == "store"
