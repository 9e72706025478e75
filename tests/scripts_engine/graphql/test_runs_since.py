"""runsSince: a program follows the runs that end, without missing or repeating any."""

import random
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation
from accounts.scopes import Scope
from core.database.commit_order import THIS_COMMIT
from core.graphql.connection import cursor_of
from jobs.models import QueueEntry
from jobs.queue.cancel import cancel_run
from jobs.queue.claim import Turns, claim_due_runs
from jobs.queue.enqueue import QueuedWork, enqueue
from jobs.queue.finish import end_lost_runs
from jobs.queue.replay import replay_runs
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.models.run import UNENDED
from scripts_engine.runs.quota import remove_payloads
from scripts_engine.runs.recording import record_run
from scripts_engine.runs.spec import NOBODY, Event
from tests.accounts.test_field_scopes import token_with
from tests.concurrency import at_once
from tests.eventually import eventually
from tests.factories import GraphQLAnswer, admin_graphql, make_script, run_lua
from tests.query_plans import plan_of
from tests.settled import settle
from tests.working_queue import make_due, work_queue

FOLLOW = """query($cursor: String, $first: Int, $filter: RunFilter) {
    runsSince(cursor: $cursor, first: $first, filter: $filter) {
        nodes { id status } cursor hasMore } }"""
FAILING = "error('no')"
# What a transaction has written is settled once it has ended.
pytestmark = pytest.mark.django_db(transaction=True)
EVENT = Event(method="POST", query="", headers=(), body=b"", client_address="")


def asked(token: str, **variables: Any) -> GraphQLAnswer:
    return admin_graphql(FOLLOW, token, **variables)


def follow(token: str, cursor: str | None = None, **variables: Any) -> Any:
    return asked(token, cursor=cursor, **variables).data["runsSince"]


def ids_of(feed: Any) -> list[str]:
    return [node["id"] for node in feed["nodes"]]


def statuses_of(feed: Any) -> list[str]:
    return [node["status"] for node in feed["nodes"]]


def queue(script: Script, **work: Any) -> Run:
    given = QueuedWork(
        organisation_id=script.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        trigger=Trigger.QUEUE,
        event=EVENT,
        **work,
    )
    return Run.objects.get(pk=enqueue(given))


class Follower:
    """A program that keeps the cursor; ``seen`` are the ids that it got."""

    def __init__(self, token: str) -> None:
        self.token, self.cursor, self.seen = token, None, list[str]()

    def look(self) -> bool:
        """Reads to the end; whether there was anything."""
        before, has_more = len(self.seen), True
        while has_more:
            feed = follow(self.token, self.cursor, first=3)
            self.seen += ids_of(feed)
            self.cursor, has_more = feed["cursor"], feed["hasMore"]
        return len(self.seen) > before


def ended_runs(organisation: Organisation) -> set[str]:
    return {str(run.pk) for run in Run.objects.filter(organisation=organisation).ended()}


# --- Every way to end -----------------------------------------------------------------------------


def test_run_is_followed_once_it_has_ended(script: Script, acme_token: str) -> None:
    follower = Follower(acme_token)
    queued = queue(script)
    before = follower.look()
    make_due()
    work_queue()

    eventually(follower.look)
    assert (before, follower.seen) == (False, [str(queued.pk)])


def test_runs_follow_in_the_order_of_their_ends(acme: Organisation, acme_token: str) -> None:
    script = make_script(acme, FAILING)
    queued, cancelled, lost = (queue(script, max_attempts=2) for _ in range(3))
    cancel_run(cancelled)
    direct = run_lua(acme, "return 1")
    QueueEntry.objects.filter(pk=lost.pk).update(due_at=timezone.now() + timedelta(days=1))
    work_queue()
    make_due(lost.pk)
    claim_due_runs(1, Turns())
    QueueEntry.objects.leased().update(lease_ends_at=timezone.now())
    end_lost_runs()
    delete_script(script)
    retries = Run.objects.filter(first_run__in=[queued.pk, lost.pk])
    follower = Follower(acme_token)

    settle()
    follower.look()

    ended = [str(run.pk) for run in (cancelled, direct, queued, lost)]
    assert follower.seen[:4] == ended
    assert set(follower.seen[4:]) == {str(run.pk) for run in retries}
    assert set(follower.seen) == ended_runs(acme)
    assert Run.objects.filter(status__in=UNENDED).count() == 0


def test_replay_and_removed_payload_do_not_bring_a_run_again(
    acme: Organisation, acme_token: str
) -> None:
    script = make_script(acme, FAILING)
    letter = queue(script, max_attempts=1)
    work_queue()
    follower = Follower(acme_token)
    eventually(follower.look)
    replay_runs([Run.objects.get(pk=letter.pk)], author=NOBODY)
    remove_payloads([letter.pk])

    assert not follower.look()


# --- Concurrent writers ---------------------------------------------------------------------------


def record_copy(row: dict[str, Any]) -> None:
    record_run({**row, "id": uuid7(), "ended_in": THIS_COMMIT})


def test_follower_gets_each_run_of_concurrent_writers_once(
    acme: Organisation, globex: Organisation, script: Script, acme_token: str
) -> None:
    run_lua(acme, "return 1")
    row: dict[str, Any] = {**Run.objects.values().get()}
    theirs: dict[str, Any] = {
        **row,
        "organisation_id": globex.pk,
        "script_id": make_script(globex).pk,
    }
    chance, cursors = random.Random(11), list[str | None]()
    plans = [[chance.choice(["record", "cancel", "both"]) for _ in range(6)] for _ in range(4)]
    followers, done = [Follower(acme_token)], list[int]()
    followers[0].look()

    def write(kind: str) -> None:
        if kind == "record":
            record_copy(row)
            record_copy(theirs)
            return
        with transaction.atomic():
            if kind == "both":
                record_copy(row)
            cancel_run(queue(script))
            # Others commit meanwhile, and the follower looks past this transaction.
            before = len(cursors)
            eventually(lambda: len(cursors) > before)

    def act(number: int) -> None:
        if number < len(plans):
            for kind in plans[number]:
                write(kind)
            done.append(number)
            return
        while len(done) < len(plans):
            followers[-1].look()
            # As after a restart: all that is kept is the cursor.
            follower = Follower(acme_token)
            follower.cursor = followers[-1].cursor
            cursors.append(follower.cursor)
            followers.append(follower)

    at_once(len(plans) + 1, act)
    eventually(
        lambda: not followers[-1].look() and len(seen_by(followers)) >= len(ended_runs(acme))
    )

    assert sorted(seen_by(followers)) == sorted(ended_runs(acme))


def seen_by(followers: list[Follower]) -> list[str]:
    return [each for follower in followers for each in follower.seen]


# --- Arguments ------------------------------------------------------------------------------------


def test_filter_moves_the_cursor_past_what_it_leaves_out(
    acme: Organisation, acme_token: str
) -> None:
    succeeded, failed = run_lua(acme, "return 1"), run_lua(acme, FAILING)
    only_failed: dict[str, Any] = {"filter": {"status": "Failed"}}
    found = dict[str, Any]()

    def is_found() -> bool:
        found.update(follow(acme_token, **only_failed))
        return bool(found["nodes"])

    eventually(is_found)
    other = follow(acme_token, found["cursor"])

    assert (ids_of(found), found["hasMore"]) == ([str(failed.pk)], False)
    assert (other["nodes"], other["hasMore"]) == ([], False)
    assert str(succeeded.pk) not in ids_of(found)


def test_pages_end_where_asked_and_say_that_there_is_more(
    acme: Organisation, acme_token: str
) -> None:
    runs = [str(run_lua(acme, "return 1").pk) for _ in range(3)]
    eventually(lambda: len(follow(acme_token)["nodes"]) == 3)

    first = follow(acme_token, first=2)
    rest = follow(acme_token, first["cursor"], first=2)

    assert (ids_of(first), first["hasMore"]) == (runs[:2], True)
    assert (ids_of(rest), rest["hasMore"]) == (runs[2:], False)


def test_runs_of_another_organisation_are_not_followed(
    acme: Organisation, acme_token: str, globex_token: str
) -> None:
    run_lua(acme, "return 1")
    eventually(lambda: follow(acme_token)["nodes"])

    theirs = follow(globex_token)
    with_our_cursor = follow(globex_token, follow(acme_token)["cursor"])

    assert (theirs["nodes"], with_our_cursor["nodes"]) == ([], [])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cursor": ""}, "cursor"),
        ({"cursor": "bm8="}, "cursor"),
        ({"cursor": "WyIxIl0="}, "cursor"),
        ({"cursor": "WyI5OTk5OTk5OTk5OTk5OTk5OTk5OTk5IiwgIjAiXQ=="}, "cursor"),
        ({"first": 0}, "first"),
        ({"first": 201}, "first"),
    ],
)
def test_bad_argument_is_refused_by_its_name(
    acme_token: str, given: dict[str, Any], field: str
) -> None:
    answer = asked(acme_token, **given)

    assert (answer.code, answer.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", field)


def test_cursor_of_the_future_stays(acme: Organisation, acme_token: str) -> None:
    """As after a backup was restored into an older cluster: it must not begin again."""
    future = cursor_of([2**62, uuid.UUID(int=0)])
    run_lua(acme, "return 1")

    answer = follow(acme_token, future)

    assert (answer["nodes"], answer["cursor"], answer["hasMore"]) == ([], future, False)


def test_bodies_need_the_scope_of_bodies(acme: Organisation) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS)
    bodies = "{ runsSince { nodes { id responseBody } } }"

    refused = admin_graphql(bodies, token)
    elsewhere = admin_graphql("{ runsSince { cursor } }", token_with(acme, Scope.READ_AUDIT))

    assert [error["extensions"]["scope"] for error in refused.errors] == ["ReadPayloads"]
    assert {error["extensions"]["scope"] for error in elsewhere.errors} == {"ReadScripts"}
    assert asked(token).errors == []


def test_next_runs_are_found_by_the_index_of_ended_ones(
    acme: Organisation, acme_token: str
) -> None:
    run_lua(acme, "return 1")
    cursor = follow(acme_token)["cursor"]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        follow(acme_token, cursor, filter={"status": "Failed"})

    [statement] = [
        query["sql"]
        for query in queries
        if 'FROM "scripts_engine_run"' in query["sql"] and "ORDER BY" in query["sql"]
    ]
    with transaction.atomic():
        plan = plan_of(statement)
    assert "run_ended" in plan
    assert "TEMP B-TREE" not in plan
