"""Queued runs at /admin/graphql: attempts, what belongs to each other, and their payloads."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation
from hooks.models import Hook
from jobs.models import QueueEntry
from scripts_engine.models import Run
from scripts_engine.runs.quota import remove_payloads
from tests.factories import GraphQLAnswer, admin_graphql, make_hook, make_past_run, make_script
from tests.query_plans import plan_of, scans_an_organisation

FIELDS = """id attempt deadLetter dueAt scheduledAt status requestBody requestBodyBase64
    requestBytes requestQuery firstRun { id } pushedBy { id } pushedRuns { id } replayOf { id }"""
RUN = f"query($id: ID!) {{ run(id: $id) {{ {FIELDS} }} }}"
RUNS = f"{{ runs(first: 100) {{ nodes {{ {FIELDS} }} }} }}"
OF_FIRST = "query($id: ID!) { runs(firstRun: $id) { totalCount nodes { id } } }"


@pytest.fixture
def theirs(globex: Organisation) -> Run:
    """A run of another organisation."""
    return make_run(make_hook(make_script(globex)).hook)


def make_run(hook: Hook, status: str = "failed", **fields: Any) -> Run:
    return make_past_run(hook, timezone.now(), status, **fields)


def make_first(hook: Hook, body: bytes = b"payload", **fields: Any) -> Run:
    given = {"attempt": 1, "request_body": body, "request_bytes": len(body), **fields}
    return make_run(hook, request_query="a=1", **given)


def make_later(hook: Hook, first: Run, attempt: int = 2, **fields: Any) -> Run:
    given = {"request_query": first.request_query, "request_bytes": first.request_bytes, **fields}
    return make_run(hook, first_run=first, attempt=attempt, **given)


def make_entry(run: Run, seconds: int) -> QueueEntry:
    return QueueEntry.objects.create(
        run=run,
        organisation=run.organisation,
        script=run.script,
        payload_of=run.first_attempt_id,
        due_at=timezone.now() + timedelta(seconds=seconds),
        max_attempts=5,
    )


def shown(run: Run, token: str) -> Any:
    answer = admin_graphql(RUN, token, id=str(run.pk))
    assert answer.errors == []
    return answer.data["run"]


def ids_of(answer: GraphQLAnswer) -> set[str]:
    return {node["id"] for node in answer.data["runs"]["nodes"]}


def test_a_run_that_was_never_queued_is_its_own_first_attempt(hook: Hook, acme_token: str) -> None:
    run = make_run(hook, "succeeded", request_body=b"payload")

    assert shown(run, acme_token) == {
        "id": str(run.pk),
        "attempt": 1,
        "deadLetter": False,
        "dueAt": None,
        "scheduledAt": None,
        "status": "Succeeded",
        "requestBody": "payload",
        "requestBodyBase64": "cGF5bG9hZA==",
        "requestBytes": 7,
        "requestQuery": "",
        "firstRun": {"id": str(run.pk)},
        "pushedBy": None,
        "pushedRuns": [],
        "replayOf": None,
    }


def test_a_later_attempt_shows_the_payload_of_the_first(hook: Hook, acme_token: str) -> None:
    first = make_first(hook)
    later = make_later(hook, first, is_dead_letter=True)

    run = shown(later, acme_token)
    assert (run["attempt"], run["deadLetter"]) == (2, True)
    assert run["firstRun"] == {"id": str(first.pk)}
    assert (run["requestBody"], run["requestBodyBase64"]) == ("payload", "cGF5bG9hZA==")
    assert (run["requestBytes"], run["requestQuery"]) == (7, "a=1")


def test_a_later_attempt_loses_the_payload_with_the_first(hook: Hook, acme_token: str) -> None:
    first = make_first(hook)
    later = make_later(hook, first)
    remove_payloads([first.pk])

    run = shown(later, acme_token)
    assert (run["requestBody"], run["requestBodyBase64"]) == (None, "")
    assert run["requestBytes"] == 7


def test_a_later_attempt_outlives_the_first(hook: Hook, acme_token: str) -> None:
    first = make_first(hook)
    later = make_later(hook, first)
    Run.objects.filter(pk=first.pk).delete()

    run = shown(later, acme_token)
    assert run["firstRun"] is None
    assert (run["requestBody"], run["requestBodyBase64"], run["requestBytes"]) == (None, "", 7)


def test_runs_show_what_pushed_and_replayed_them(hook: Hook, acme_token: str) -> None:
    pushing = make_first(hook)
    pushed = make_first(hook, pushed_by=pushing)
    make_later(hook, pushed, pushed_by=pushing)
    second = make_first(hook, pushed_by=pushing)
    replay = make_first(hook, replay_of=pushed)

    in_order = sorted([str(pushed.pk), str(second.pk)])
    assert shown(pushing, acme_token)["pushedRuns"] == [{"id": each} for each in in_order]
    assert shown(pushed, acme_token)["pushedBy"] == {"id": str(pushing.pk)}
    assert shown(replay, acme_token)["replayOf"] == {"id": str(pushed.pk)}


@pytest.mark.parametrize("relation", ["first_run", "pushed_by", "replay_of"])
def test_runs_of_other_organisations_are_not_shown(
    hook: Hook, theirs: Run, acme_token: str, globex_token: str, relation: str
) -> None:
    run = make_run(hook, **{relation: theirs})
    mine, other = shown(run, acme_token), shown(theirs, globex_token)

    assert [mine["pushedBy"], mine["replayOf"]] == [None, None]
    assert mine["firstRun"] in (None, {"id": str(run.pk)})
    assert mine["requestBody"] in (None, "")
    assert other["pushedRuns"] == []


@pytest.mark.parametrize("status", ["queued", "running", "lost", "cancelled"])
def test_each_status_is_shown_and_filters(hook: Hook, acme_token: str, status: str) -> None:
    make_run(hook, "succeeded")
    run = make_run(hook, status)
    name = status.title()
    answer = admin_graphql(f"{{ runs(status: {name}) {{ nodes {{ id status }} }} }}", acme_token)

    assert answer.data["runs"]["nodes"] == [{"id": str(run.pk), "status": name}]


def test_a_queued_run_shows_when_it_is_due(hook: Hook, acme_token: str) -> None:
    queued, running = make_first(hook, status="queued"), make_first(hook, status="running")
    entry = make_entry(queued, seconds=60)
    make_entry(running, seconds=60)

    assert shown(queued, acme_token)["dueAt"] == entry.due_at.isoformat()
    assert shown(running, acme_token)["dueAt"] is None


def test_the_time_of_the_schedule_is_shown(hook: Hook, acme_token: str) -> None:
    at = timezone.now()
    run = make_first(hook, scheduled_at=at)

    assert shown(run, acme_token)["scheduledAt"] == at.isoformat()


# --- Filters --------------------------------------------------------------------------------------


def test_dead_letters_are_listed(hook: Hook, acme_token: str) -> None:
    dead, settled = make_run(hook, is_dead_letter=True), make_run(hook, is_dead_letter=False)
    other = make_run(hook)
    query = "query($dead: Boolean) { runs(deadLetter: $dead) { nodes { id } } }"

    assert ids_of(admin_graphql(query, acme_token, dead=True)) == {str(dead.pk)}
    not_dead = {str(settled.pk), str(other.pk)}
    assert ids_of(admin_graphql(query, acme_token, dead=False)) == not_dead
    assert ids_of(admin_graphql(query, acme_token, dead=None)) == not_dead | {str(dead.pk)}


def test_the_attempts_of_a_run_are_listed(hook: Hook, acme_token: str) -> None:
    first, _ = make_first(hook), make_first(hook)
    later = make_later(hook, first)

    expected = {str(first.pk), str(later.pk)}
    assert ids_of(admin_graphql(OF_FIRST, acme_token, id=str(first.pk))) == expected
    Run.objects.filter(pk=first.pk).delete()
    assert ids_of(admin_graphql(OF_FIRST, acme_token, id=str(first.pk))) == {str(later.pk)}


def test_attempts_of_another_organisation_are_not_found(
    hook: Hook, theirs: Run, acme_token: str
) -> None:
    make_later(Hook.objects.get(pk=theirs.hook_id), theirs)
    ids = [str(theirs.pk), str(hook.pk), "x", ""]
    answers = [admin_graphql(OF_FIRST, acme_token, id=each) for each in ids]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 4


@pytest.mark.parametrize(
    ("arguments", "index"),
    [
        # Of few rows, PostgreSQL takes the index of all organisations.
        ("deadLetter: true", "run_dead_letter"),
        ('firstRun: "{first}"', "run_later_attempt"),
    ],
)
def test_a_filter_has_its_index(hook: Hook, acme_token: str, arguments: str, index: str) -> None:
    first = make_first(hook)
    query = f"{{ runs({arguments.format(first=first.pk)}) {{ nodes {{ id }} }} }}"
    with CaptureQueriesContext(connection) as captured:
        assert admin_graphql(query, acme_token).errors == []

    selects = [each["sql"] for each in captured if 'FROM "scripts_engine_run"' in each["sql"]]
    assert index in "".join(plan_of(statement) for statement in selects)


def test_what_runs_have_pushed_is_found_by_its_index(hook: Hook, acme_token: str) -> None:
    make_family(hook)
    with CaptureQueriesContext(connection) as captured:
        answer = admin_graphql("{ runs { nodes { pushedRuns { id } } } }", acme_token)

    (pushed,) = [each["sql"] for each in captured if '"pushed_by_id" IN' in each["sql"]]
    assert answer.errors == []
    assert not scans_an_organisation(pushed)
    # PostgreSQL chooses by the number of rows, which are few.
    assert "run_pushed" in plan_of(pushed) or connection.vendor == "postgresql"


# --- The cost of a page ---------------------------------------------------------------------------


def test_a_page_costs_as_many_queries_for_many_as_for_one(hook: Hook, acme_token: str) -> None:
    query = """{ runs { nodes { attempt dueAt requestBytes requestQuery hook { maxAttempts }
        firstRun { pushedBy { id script { name } } }
        pushedRuns { id firstRun { id } dueAt }
        replayOf { id firstRun { pushedBy { hook { name } } } } } } }"""
    make_family(hook)
    few = queries_of(query, acme_token)
    [make_family(hook) for _ in range(5)]

    assert queries_of(query, acme_token) == few


def make_family(hook: Hook) -> None:
    """A run for each way in which runs belong to each other."""
    root = make_first(hook)
    pushed = make_first(hook, pushed_by=root)
    later = make_later(hook, pushed, pushed_by=root)
    queued = make_later(hook, pushed, attempt=3, pushed_by=root, status="queued")
    make_entry(queued, seconds=1)
    make_first(hook, replay_of=later)
    waiting = make_first(hook, pushed_by=later, status="queued")
    make_entry(waiting, seconds=2)


def queries_of(query: str, token: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        answer = admin_graphql(query, token)
    assert answer.errors == []
    return len(captured)
