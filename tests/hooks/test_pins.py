"""Which version runs for the calls of a pinned hook: at once, from the queue, and again."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.http.origin import NOWHERE
from hooks.flows.hooks import IssuedHook, delete_hook, pin_hook, update_hook
from hooks.flows.refused_calls import replay_refused_call
from hooks.models import Hook
from jobs.models import RunLimits
from jobs.queue.replay import replay_runs
from scripts_engine.flows.definitions import forget_definitions
from scripts_engine.models import Release, Run, Script, ScriptVersion
from scripts_engine.runs.spec import NOBODY
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    make_hook,
    make_organisation,
    make_refused_call,
    make_script,
    reply_of,
)
from tests.working_queue import make_due, work_all, work_queue

pytestmark = pytest.mark.django_db

PIN = """
    mutation ($hook: ID!, $version: ID, $expectedRevision: Int) {
        pinHook(hook: $hook, version: $version, expectedRevision: $expectedRevision) {
            revision pinned { id number } script { version { number } }
        }
    }
"""


@pytest.fixture
def issued(acme: Any) -> IssuedHook:
    """A hook of a script whose live version returns “live”."""
    return make_hook(make_script(acme, 'return "live"'))


@pytest.fixture
def pinned(issued: IssuedHook) -> ScriptVersion:
    """A version that returns “pinned”, to which the hook is pinned."""
    version = publish(issued.hook.script)
    pin_hook(issued.hook, version)
    return version


def publish(script: Script, source: str = 'return "pinned"', **fields: Any) -> ScriptVersion:
    number = script.versions.count() + 1
    published = {"published_at": timezone.now(), **fields}
    return ScriptVersion.objects.create(script=script, number=number, source=source, **published)


def call(client: Client, issued: IssuedHook) -> Any:
    path = issued.hook.url_with(issued.call_token).partition("//")[2].partition("/")[2]
    return client.post(f"/{path}", b"", content_type="text/plain")


# --- Calls ----------------------------------------------------------------------------------------


def test_a_call_runs_the_version_that_the_hook_is_pinned_to(
    client: Client, issued: IssuedHook, pinned: ScriptVersion
) -> None:
    other = make_hook(issued.hook.script, "other")

    assert call(client, issued).content == b"pinned"
    assert call(client, other).content == b"live"
    assert Run.objects.get(hook_id=issued.hook.pk).script_version == pinned

    pin_hook(issued.hook, None)
    assert call(client, issued).content == b"live"


def test_a_pinned_call_takes_as_many_statements_as_another(
    client: Client, issued: IssuedHook
) -> None:
    def statements() -> list[str]:
        call(client, issued)
        with CaptureQueriesContext(connection) as captured:
            call(client, issued)
        return [each["sql"].split()[0] for each in captured]

    live = statements()
    pin_hook(issued.hook, publish(issued.hook.script))

    assert statements() == live


def test_a_refused_call_is_replayed_with_the_pin(issued: IssuedHook, pinned: ScriptVersion) -> None:
    run = replay_refused_call(make_refused_call(issued.hook), origin=NOWHERE)

    assert reply_of(run) == "pinned"
    assert run.script_version == pinned


# --- The queue ------------------------------------------------------------------------------------


def queued(client: Client, issued: IssuedHook) -> Run:
    update_hook(issued.hook, reply_mode="accepted")
    assert call(client, issued).status_code == 202
    return Run.objects.get(status="queued")


def test_a_queued_run_of_a_pinned_hook_runs_the_pin(
    client: Client, issued: IssuedHook, pinned: ScriptVersion
) -> None:
    run = queued(client, issued)
    assert run.script_version == pinned

    (ended,) = work_queue()

    assert reply_of(ended) == "pinned"
    assert ended.script_version == pinned


def test_what_counts_is_the_pin_when_the_run_starts(client: Client, issued: IssuedHook) -> None:
    queued(client, issued)
    version = publish(issued.hook.script)
    pin_hook(issued.hook, version)
    (first,) = work_queue()
    queued(client, issued)
    pin_hook(issued.hook, None)
    (second,) = work_queue()

    assert (reply_of(first), first.script_version) == ("pinned", version)
    assert (reply_of(second), second.script_version) == ("live", issued.hook.script.current_version)


def test_later_attempts_run_the_pin(client: Client, issued: IssuedHook) -> None:
    failing = publish(issued.hook.script, 'error("no")')
    update_hook(issued.hook, max_attempts=2)
    pin_hook(issued.hook, failing)
    queued(client, issued)

    assert [run.script_version for run in work_all()] == [failing, failing]


def test_a_replay_runs_the_pin(client: Client, issued: IssuedHook, pinned: ScriptVersion) -> None:
    other = make_hook(issued.hook.script, "other")
    call(client, issued)
    call(client, other)
    runs = list(Run.objects.order_by("id"))

    first, second = replay_runs(runs, author=NOBODY)

    assert Run.objects.get(pk=first).script_version == pinned
    assert Run.objects.get(pk=second).script_version == issued.hook.script.current_version
    make_due()
    assert [reply_of(run) for run in work_queue()] == ["pinned", "live"]


def test_pins_add_no_statement_to_a_claim(client: Client, issued: IssuedHook) -> None:
    def statements() -> int:
        queued(client, issued)
        with CaptureQueriesContext(connection) as captured:
            work_queue()
        return len(captured)

    statements()
    live = statements()
    pin_hook(issued.hook, publish(issued.hook.script))
    statements()

    assert statements() == live


def test_a_hook_without_pin_and_limits_says_nothing_to_the_queue(
    issued: IssuedHook, pinned: ScriptVersion
) -> None:
    assert RunLimits.objects.get().version_id == pinned.pk

    pin_hook(issued.hook, None)

    assert not RunLimits.objects.exists()


# --- What can be pinned ---------------------------------------------------------------------------


def test_only_published_versions_of_the_hooks_script_are_pinned(issued: IssuedHook) -> None:
    hook, script = issued.hook, issued.hook.script
    other = make_script(script.organisation, name="other")
    wrong = [
        publish(script, published_at=None),
        publish(script, draft_of="user 1"),
        publish(other),
        publish(make_script(make_organisation("Globex"))),
    ]
    releases = Release.objects.count()

    for version in wrong:
        with pytest.raises(ValidationError) as refused:
            pin_hook(hook, version)
        assert list(refused.value.error_dict) == ["version"]

    hook.refresh_from_db()
    assert (hook.pinned_version, hook.revision) == (None, 1)
    assert not RunLimits.objects.exists()
    assert Release.objects.count() == releases


def test_a_pinned_version_is_kept_and_goes_after_the_pin(issued: IssuedHook, settings: Any) -> None:
    settings.VERSIONS_KEPT_PER_SCRIPT = 1
    hook, script = issued.hook, issued.hook.script
    old, _, newest = (publish(script) for _ in range(3))
    Script.objects.filter(pk=script.pk).update(current_version=newest)
    pin_hook(hook, old)
    ScriptVersion.objects.update(created_at=timezone.now() - timedelta(days=1))
    # They keep the versions that they name.
    Release.objects.all().delete()

    forget_definitions()
    assert set(script.versions.all()) == {old, newest}
    delete_hook(hook)
    Release.objects.all().delete()
    forget_definitions()
    assert set(script.versions.all()) == {old, newest}

    Hook.objects.update(pinned_version=None)
    forget_definitions()
    assert set(script.versions.all()) == {newest}


# --- GraphQL --------------------------------------------------------------------------------------


def pin(token: str, hook: Hook, version: object, **others: Any) -> GraphQLAnswer:
    given = None if version is None else str(version)
    return admin_graphql(PIN, token, hook=str(hook.pk), version=given, **others)


def test_a_program_pins_and_unpins_a_hook(acme_token: str, issued: IssuedHook) -> None:
    version = publish(issued.hook.script)

    answer = pin(acme_token, issued.hook, version.pk)
    assert answer.data["pinHook"] == {
        "revision": 2,
        "pinned": {"id": str(version.pk), "number": 2},
        "script": {"version": {"number": 1}},
    }
    answer = pin(acme_token, issued.hook, None, expectedRevision=2)
    assert answer.data["pinHook"]["pinned"] is None


def test_a_pin_that_is_refused_changes_nothing(
    acme_token: str, globex_token: str, issued: IssuedHook
) -> None:
    version = publish(issued.hook.script)
    draft = publish(issued.hook.script, draft_of="user 1")
    theirs = publish(make_script(make_organisation("Initech")))
    hook, releases = issued.hook, Release.objects.count()

    refused = pin(acme_token, hook, draft.pk)
    assert (refused.code, refused.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", "version")
    assert pin(acme_token, hook, theirs.pk).code == "NOT_FOUND"
    assert pin(acme_token, hook, uuid.uuid4()).code == "NOT_FOUND"
    assert pin(globex_token, hook, version.pk).code == "NOT_FOUND"
    moved = pin(acme_token, hook, version.pk, expectedRevision=7)
    assert moved.code == "CONFLICT"
    assert {"by", "at"} <= moved.errors[0]["extensions"].keys()

    hook.refresh_from_db()
    assert (hook.pinned_version, hook.revision) == (None, 1)
    assert Release.objects.count() == releases


def test_a_scripts_hooks_are_listed_with_their_pins(
    acme_token: str, issued: IssuedHook, pinned: ScriptVersion
) -> None:
    make_hook(issued.hook.script, "other")
    delete_hook(make_hook(issued.hook.script, "deleted").hook)
    make_hook(make_script(issued.hook.organisation, name="elsewhere"), "third")
    query = "{ scripts { nodes { name hooks { name pinned { number } script { name } } } } }"

    answer = admin_graphql(query, acme_token)

    elsewhere, echo = answer.data["scripts"]["nodes"]
    assert [hook["name"] for hook in elsewhere["hooks"]] == ["third"]
    assert echo["hooks"] == [
        {"name": "other", "pinned": None, "script": {"name": "echo"}},
        {"name": "shop", "pinned": {"number": 2}, "script": {"name": "echo"}},
    ]


def test_the_hooks_of_many_scripts_take_no_more_statements(
    acme_token: str, issued: IssuedHook
) -> None:
    query = "{ scripts { nodes { hooks { name pinned { number } sender } } } }"

    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert admin_graphql(query, acme_token).errors == []
        return len(captured)

    statements()
    one = statements()
    for number in range(3):
        make_hook(make_script(issued.hook.organisation, name=f"script {number}"))

    assert statements() == one
