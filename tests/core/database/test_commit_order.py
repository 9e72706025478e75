"""Rows are followed in the order of their commits, with any number of writers."""

import random
import threading
import uuid
from typing import Any

import pytest
from django.db import connection, connections, transaction

from accounts.audit import Subject, record
from accounts.models import AuthEvent, AuthEventKind, Organisation, SubjectKind
from core.database import commit_order
from core.database.commit_order import settled_before
from core.http.origin import NOWHERE
from tests.concurrency import at_once
from tests.eventually import eventually
from tests.factories import admin_graphql
from tests.postgresql import IS_POSTGRESQL

FOLLOW = """query($after: String, $first: Int) {
    authEvents(oldestFirst: true, first: $first, after: $after, kind: "member.invited") {
        nodes { id } pageInfo { hasNextPage endCursor } } }"""


def write(organisation: Organisation) -> str:
    """An event, by its credential."""
    name = uuid.uuid4().hex
    about = Subject(SubjectKind.ADDRESS, "", "alice@example.com")
    record(
        AuthEventKind.MEMBER_INVITED,
        NOWHERE,
        about=about,
        organisation=organisation,
        credential=name,
    )
    return name


class Follower:
    """What a program gets that goes on after each cursor, by credential."""

    def __init__(self, token: str) -> None:
        self.token, self.after, self.seen = token, None, list[str]()

    def look(self, first: int = 3) -> list[str]:
        """What is new, up to the end."""
        new: list[str] = []
        is_more = True
        while is_more:
            answer = admin_graphql(FOLLOW, self.token, after=self.after, first=first)
            page = answer.data["authEvents"]
            new += [node["id"] for node in page["nodes"]]
            self.after = page["pageInfo"]["endCursor"] or self.after
            is_more = page["pageInfo"]["hasNextPage"]
        names = dict(AuthEvent.objects.filter(pk__in=new).values_list("pk", "credential"))
        found = [names[uuid.UUID(each)] for each in new]
        self.seen += found
        return found

    def wait_for(self, count: int) -> None:
        """Other databases of the server may be writing, whose transactions count too."""
        eventually(lambda: self.look() == [] and len(self.seen) >= count)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has one writer at a time")
def test_event_of_a_transaction_that_commits_last_is_followed_last(
    acme: Organisation, acme_token: str
) -> None:
    follower = Follower(acme_token)
    is_written, may_commit = threading.Event(), threading.Event()
    early: list[str] = []

    def commit_late() -> None:
        with transaction.atomic():
            early.append(write(acme))
            is_written.set()
            assert may_commit.wait(60)
        connections.close_all()

    thread = threading.Thread(target=commit_late)
    thread.start()
    assert is_written.wait(60)
    late = write(acme)
    meanwhile = follower.look()
    may_commit.set()
    thread.join()

    assert meanwhile == []
    follower.wait_for(2)
    assert follower.seen == [*early, late]


@pytest.mark.django_db(transaction=True)
def test_follower_gets_each_event_of_concurrent_writers_once(
    acme: Organisation, globex: Organisation, acme_token: str
) -> None:
    follower = Follower(acme_token)
    follower.look()
    chance, looks, done = random.Random(7), list[int](), list[int]()
    plans = [[chance.randint(1, 3) for _ in range(6)] for _ in range(4)]

    def act(number: int) -> list[str]:
        written: list[str] = []
        for count in plans[number]:
            with transaction.atomic():
                written += [write(acme) for _ in range(count)]
                write(globex)
                # Others commit meanwhile, and the follower looks past this transaction.
                before = len(looks)
                eventually(lambda: len(looks) > before)  # noqa: B023 (called at once)
        done.append(number)
        return written

    def look() -> list[str]:
        while len(done) < len(plans):
            follower.look()
            looks.append(len(follower.seen))
        return []

    results = at_once(len(plans) + 1, lambda n: look() if n == len(plans) else act(n))
    written = [name for names in results for name in names]
    follower.wait_for(len(written))

    assert len(written) == sum(map(sum, plans))
    assert sorted(follower.seen) == sorted(written)


@pytest.mark.django_db(transaction=True)
def test_numbers_grow_after_the_last_rows_were_deleted_and_the_clock_was_set_back(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(acme)
    first = AuthEvent.objects.latest("written_in").written_in
    AuthEvent.objects.filter(organisation=acme).delete()
    write(acme)
    second = AuthEvent.objects.latest("written_in").written_in
    monkeypatch.setattr(commit_order.time, "time_ns", lambda: 0)
    write(acme)
    third = AuthEvent.objects.latest("written_in").written_in

    assert first < second < third
    eventually(lambda: third < settled_before(AuthEvent.objects.all(), "written_in"))


@pytest.mark.django_db
@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has no clusters")
def test_numbers_of_a_cluster_that_is_created_later_are_larger() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {commit_order._CLUSTER} FROM "
            "(SELECT system_identifier + i * (1::bigint << 32) AS system_identifier "
            "FROM pg_control_system(), generate_series(0, 1) i) clusters ORDER BY 1"
        )
        [own], [later] = cursor.fetchall()

    assert 0 < own < own + 2**32 - 1 < later < 2**63


def test_null_stays_null(acme: Organisation) -> None:
    field: Any = commit_order.CommitNumber()

    assert field.get_db_prep_save(None, connection) is None
