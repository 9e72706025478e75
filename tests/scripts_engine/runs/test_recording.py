"""Group commit: runs of several threads share a commit without affecting each other."""

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections, transaction

from accounts.models import Organisation
from core.database.unavailable import DatabaseUnavailable
from scripts_engine.models import Run
from scripts_engine.runs import recording as module
from scripts_engine.runs.recording import RunNotRecordedError, record_run
from scripts_engine.runs.rows import Row
from tests import factories
from tests.eventually import eventually

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = 6


class Gate:
    """Replaces the INSERT: records the sizes of groups, and delays the first one."""

    def __init__(self, execute: Callable[[Sequence[Row]], None]) -> None:
        self._execute = execute
        self.groups: list[int] = []
        self.is_open = threading.Event()

    def execute(self, rows: Sequence[Row]) -> None:
        self.groups.append(len(rows))
        if len(self.groups) == 1:
            assert self.is_open.wait(30)
        self._execute(rows)


@pytest.fixture
def row(acme: Organisation) -> Row:
    """The columns of a run, to be recorded under other ids."""
    run = factories.run_lua(acme, "return 1")
    values: Row = Run.objects.filter(pk=run.pk).values().get()
    Run.objects.all().delete()
    return values


@pytest.fixture
def gate(row: Row, monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate(module._insert.execute)
    monkeypatch.setattr(module, "_insert", gate)
    return gate


class Recording:
    """Records each row in a thread; the first one leads while the others arrive."""

    def __init__(
        self, gate: Gate, rows: Sequence[Row], before: Callable[[], None] = lambda: None
    ) -> None:
        self.errors: dict[uuid.UUID, Exception] = {}
        self._before = before
        threads = [threading.Thread(target=self._record, args=(row,)) for row in rows]
        threads[0].start()
        eventually(lambda: gate.groups == [1])
        for thread in threads[1:]:
            thread.start()
        eventually(lambda: sum(map(len, module._group_commit._waiting.values())) == len(rows) - 1)
        gate.is_open.set()
        for thread in threads:
            thread.join(timeout=60)
        assert not any(thread.is_alive() for thread in threads)

    def _record(self, row: Row) -> None:
        try:
            self._before()
            record_run(row)
        except Exception as error:  # noqa: BLE001
            self.errors[row["id"]] = error
        finally:
            connections.close_all()


def copies(row: Row) -> list[dict[str, Any]]:
    return [{**row, "id": uuid.uuid4()} for _ in range(RUNS)]


def test_runs_that_arrive_during_a_commit_are_committed_by_the_next(gate: Gate, row: Row) -> None:
    rows = copies(row)

    recording = Recording(gate, rows)

    assert recording.errors == {}
    assert gate.groups == [1, RUNS - 1]
    assert set(Run.objects.values_list("pk", flat=True)) == {each["id"] for each in rows}


def test_a_refused_run_does_not_affect_others(gate: Gate, row: Row) -> None:
    rows = copies(row)
    rows[3]["script_id"] = uuid.uuid4()

    recording = Recording(gate, rows)

    assert list(recording.errors) == [rows[3]["id"]]
    assert isinstance(recording.errors[rows[3]["id"]], IntegrityError)
    # Of the refused one, its outline was tried too.
    assert gate.groups == [1, RUNS - 1] + [1] * RUNS
    kept = {each["id"] for each in rows} - {rows[3]["id"]}
    assert set(Run.objects.values_list("pk", flat=True)) == kept


def test_a_leader_that_fails_passes_on_the_leadership(gate: Gate, row: Row) -> None:
    rows = copies(row)
    rows[0]["script_id"] = uuid.uuid4()

    recording = Recording(gate, rows)

    assert list(recording.errors) == [rows[0]["id"]]
    assert Run.objects.count() == RUNS - 1
    record_run({**row, "id": uuid.uuid4()})
    assert Run.objects.count() == RUNS


def test_all_runs_are_recorded_after_the_connections_were_lost(
    gate: Gate, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every thread used its connection before its script ran, and has lost it since."""
    dead: list[Any] = []

    def lose_the_connection() -> None:
        connection.ensure_connection()
        dead.append(connection.connection)
        if connection.vendor == "postgresql":
            # Else the pool would hand it out again.
            connection.connection.close()

    def execute(rows: Sequence[Row]) -> None:
        connection.ensure_connection()
        if any(connection.connection is each for each in dead):
            raise DatabaseUnavailable("server closed the connection")
        statement(rows)

    statement, gate._execute = gate._execute, execute
    # What it does where the database finds the connection unusable.
    monkeypatch.setattr(module, "close_old_connections", lambda: connection.close())  # noqa: PLW0108
    rows = copies(row)

    recording = Recording(gate, rows, before=lose_the_connection)

    assert recording.errors == {}
    assert len(dead) == RUNS
    assert set(Run.objects.values_list("pk", flat=True)) == {each["id"] for each in rows}


def test_a_run_that_cannot_be_stored_raises_run_not_recorded(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(rows: Sequence[Row]) -> None:
        raise DatabaseUnavailable("disk full")

    monkeypatch.setattr(module._insert, "execute", refuse)

    with pytest.raises(RunNotRecordedError, match="disk full"):
        record_run(row)
    with transaction.atomic(), pytest.raises(RunNotRecordedError, match="disk full"):
        record_run(row)


REFUSED_CONTENT = [
    {"error_line": 2**31},
    {"error_line": 2**70},
    {"error_line": -1},
    {"response_headers": [["X", "\ud800"]], "request_query": "\ud800"},
    {"logs": [{"at": 1.0, "level": "info", "text": "x", "more": b"bytes"}]},
    {"error_message": ["a list"]},
]


@pytest.mark.parametrize("content", REFUSED_CONTENT, ids=str)
def test_a_run_with_refused_content_is_recorded_without_it(
    row: Row, content: dict[str, Any]
) -> None:
    stored = {**row, **content}

    record_run(stored)

    run = Run.objects.get()
    assert (run.pk, run.script_id, run.organisation_id) == (
        row["id"],
        row["script_id"],
        row["organisation_id"],
    )
    assert (run.status, run.response_status) == (row["status"], row["response_status"])
    assert (run.started_at, run.duration_ms) == (row["started_at"], row["duration_ms"])


REFUSED_BY_EACH = [content for content in REFUSED_CONTENT if "logs" in content] + [
    {"error_line": 2**70}
]


@pytest.mark.parametrize("content", REFUSED_BY_EACH, ids=str)
def test_an_outline_says_that_it_is_one(row: Row, content: dict[str, Any]) -> None:
    record_run({**row, "request_body": b"shown", **content})

    run = Run.objects.get()
    assert "could not be stored" in run.error_message
    assert (run.error_line, run.logs, bytes(run.request_body)) == (None, [], b"")


def test_an_outline_is_recorded_in_a_transaction_too(row: Row) -> None:
    with transaction.atomic():
        record_run({**row, "error_line": 2**70})
        Organisation.objects.create(name="Initech")

    assert "could not be stored" in Run.objects.get().error_message
    assert Organisation.objects.filter(name="Initech").exists()


def test_refused_content_does_not_cost_others_their_runs(gate: Gate, row: Row) -> None:
    rows = copies(row)
    rows[3]["error_line"] = 2**70

    recording = Recording(gate, rows)

    assert recording.errors == {}
    assert set(Run.objects.values_list("pk", flat=True)) == {each["id"] for each in rows}
    outlines = Run.objects.filter(error_message__contains="could not be stored")
    assert [run.pk for run in outlines] == [rows[3]["id"]]


def test_a_run_of_a_deleted_script_is_refused(row: Row) -> None:
    with pytest.raises(IntegrityError):
        record_run({**row, "script_id": uuid.uuid4()})

    assert Run.objects.count() == 0


def test_a_lock_in_one_organisation_holds_up_no_other(
    gate: Gate, row: Row, globex: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_group_key", lambda row, **_: row["organisation_id"])
    ours, theirs = copies(row)[0], copies(row)[1] | {"organisation_id": globex.pk}

    def record_ours() -> None:
        record_run(ours)
        connections.close_all()

    held_up = threading.Thread(target=record_ours)
    held_up.start()
    eventually(lambda: gate.groups == [1])
    record_run(theirs)
    assert [run.pk for run in Run.objects.all()] == [theirs["id"]]
    gate.is_open.set()
    held_up.join(60)

    assert Run.objects.count() == 2
    assert module._group_commit._waiting == {}


def test_large_runs_of_one_organisation_hold_up_no_other(
    gate: Gate, row: Row, globex: Organisation
) -> None:
    large, small = ({**each, "id": uuid.uuid4()} for each in (row, row))
    large["payload_bytes"] = module.LARGE_BYTES
    small["organisation_id"] = globex.pk

    def record_large() -> None:
        record_run(large)
        connections.close_all()

    held_up = threading.Thread(target=record_large)
    held_up.start()
    eventually(lambda: gate.groups == [1])
    record_run(small)
    assert [run.pk for run in Run.objects.all()] == [small["id"]]
    gate.is_open.set()
    held_up.join(60)

    assert Run.objects.count() == 2
    assert module._group_commit._waiting == {}


def test_the_size_of_a_group_is_limited(gate: Gate, row: Row) -> None:
    rows = [each | {"payload_bytes": 600 * 1024} for each in copies(row)]

    recording = Recording(gate, rows)

    assert recording.errors == {}
    assert gate.groups == [1, 2, 2, 1]
    assert Run.objects.count() == RUNS


def test_an_id_is_recorded_once(row: Row) -> None:
    record_run(row)

    with pytest.raises(IntegrityError):
        record_run(row)

    assert Run.objects.count() == 1
