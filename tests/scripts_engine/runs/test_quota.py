"""The byte quota of an organisation's runs: the oldest payloads go, their outlines stay."""

import uuid
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import TextField
from django.db.models.functions import Cast, Length
from django.test import TestCase

from accounts.models import Organisation
from scripts_engine.definition_quota import Octets
from scripts_engine.models import Run, RunStorage
from scripts_engine.runs import quota
from scripts_engine.runs.quota import remove_oldest_payloads, settle_run_bytes
from scripts_engine.runs.recording import record_run
from scripts_engine.runs.rows import measured
from tests import factories
from tests.concurrency import at_once

pytestmark = pytest.mark.django_db

KIB = 1024


@pytest.fixture
def counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts every run at once, as if it were large."""
    monkeypatch.setattr(quota, "STEP_BYTES", 1)


@pytest.fixture
def row(acme: Organisation, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The columns of a run, to be recorded under other ids. Nothing is counted yet."""
    run = factories.run_lua(acme, "return 1")
    values: dict[str, Any] = Run.objects.filter(pk=run.pk).values().get()
    Run.objects.all().delete()
    RunStorage.objects.all().delete()
    monkeypatch.setattr(quota, "_uncounted", quota._Uncounted())
    return values


def record(row: dict[str, Any], *bodies: bytes, **more: Any) -> list[uuid.UUID]:
    """Runs with these payloads, one after the other."""
    ids = []
    for body in bodies:
        made = row | {"id": uuid.UUID(int=row["id"].int + len(ids) + 1), "request_body": body}
        made |= more
        # Within a transaction, runs are counted after its commit.
        with TestCase.captureOnCommitCallbacks(execute=True):
            record_run(measured(made))
        ids.append(made["id"])
    return ids


def payloads(number: int, kib: int) -> list[bytes]:
    return [b"x" * kib * KIB] * number


def later(row: dict[str, Any], by: int = 9) -> dict[str, Any]:
    """Columns whose runs have later ids."""
    return row | {"id": uuid.UUID(int=row["id"].int + by)}


def bodies() -> list[int]:
    return [len(body) for body in Run.objects.order_by("id").values_list("request_body", flat=True)]


def used(organisation: Organisation) -> int:
    return RunStorage.objects.get(pk=organisation.pk).bytes_used


def counted() -> int:
    return sum(Run.objects.values_list("payload_bytes", flat=True))  # type: ignore[arg-type]


@pytest.mark.usefixtures("counted_at_once")
def test_the_oldest_payloads_are_removed_when_the_quota_is_exceeded(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 100 * KIB

    record(row, *payloads(5, 30))

    assert bodies() == [0, 0, 30 * KIB, 30 * KIB, 30 * KIB]
    assert used(acme) == counted() <= 100 * KIB


@pytest.mark.usefixtures("counted_at_once")
def test_the_outline_of_a_run_is_kept(row: dict[str, Any], settings: Any) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    shown = {
        "response_body": b"reply",
        "request_query": "page=2",
        "request_headers": [["X-Shop", "tea"]],
        "response_headers": [["X-Shop", "tea"]],
        "logs": [{"at": 1.0, "level": "info", "text": "line"}],
        "host_calls": [{"name": "store.get", "offsetMs": 1, "durationMs": 1, "error": None}],
        "unsaved_source": "return 1",
        "error_traceback": "stack",
        "error_message": "no tea",
    }
    old, _ = record(row, *payloads(2, 30), **shown)

    run = Run.objects.get(pk=old)
    assert (run.status, run.started_at, run.duration_ms, run.response_status) == (
        row["status"],
        row["started_at"],
        row["duration_ms"],
        row["response_status"],
    )
    assert (run.request_bytes, run.response_bytes, run.error_message) == (30 * KIB, 5, "no tea")
    assert run.payload_removed_at is not None
    assert (bytes(run.request_body), bytes(run.response_body), run.request_query) == (b"", b"", "")
    assert (run.request_headers, run.response_headers, run.logs, run.host_calls) == ([], [], [], [])
    assert (run.unsaved_source, run.error_traceback, run.payload_bytes) == ("", "", 0)


@pytest.mark.usefixtures("counted_at_once")
def test_an_organisation_has_its_own_quota(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    Organisation.objects.filter(pk=acme.pk).update(run_bytes_quota=100 * KIB)

    record(row, *payloads(3, 30))

    assert bodies() == [30 * KIB] * 3


@pytest.mark.parametrize("whose", ["installation", "organisation"])
@pytest.mark.usefixtures("counted_at_once")
def test_a_quota_of_zero_means_no_quota(
    row: dict[str, Any], acme: Organisation, settings: Any, whose: str
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = {"installation": 0, "organisation": 1}[whose]
    own = {"installation": None, "organisation": 0}[whose]
    Organisation.objects.filter(pk=acme.pk).update(run_bytes_quota=own)

    record(row, *payloads(3, 30))

    assert bodies() == [30 * KIB] * 3
    assert used(acme) == counted()


@pytest.mark.usefixtures("counted_at_once")
def test_another_organisation_keeps_its_payloads(
    row: dict[str, Any], globex: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    theirs = factories.run_lua(globex, "return 1", body=b"x" * 30 * KIB)

    record(row, *payloads(3, 30))

    theirs.refresh_from_db()
    assert len(theirs.request_body) == 30 * KIB
    assert theirs.payload_removed_at is None


def test_small_runs_cost_no_statement(row: dict[str, Any], django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(3):  # A savepoint around each INSERT, in a test's transaction.
        record(row, b"x")


def test_small_runs_are_counted_together(
    row: dict[str, Any], acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "STEP_BYTES", 3 * KIB)

    record(row, *payloads(2, 1))
    assert not RunStorage.objects.exists()

    record(later(row), b"x" * KIB)
    assert used(acme) == counted()


def test_a_run_is_recorded_though_its_bytes_cannot_be_counted(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, counted_at_once: None
) -> None:
    def refuse(*_: Any) -> None:
        raise OperationalError("disk full")

    monkeypatch.setattr(quota, "_add_to_count", refuse)

    record(row, b"x")

    assert bodies() == [1]


def test_upkeep_counts_runs_of_killed_processes(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB
    record(row, *payloads(3, 30))

    assert settle_run_bytes() == 2

    assert bodies() == [0, 0, 30 * KIB]
    assert used(acme) == counted()


def test_upkeep_no_longer_counts_deleted_runs(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    record(row, *payloads(3, 30))
    settle_run_bytes()
    Run.objects.order_by("id")[0].delete()

    settle_run_bytes()

    assert used(acme) == counted()


@pytest.mark.usefixtures("counted_at_once")
def test_deleted_runs_do_not_count_even_before_upkeep(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 100 * KIB
    first, second, _ = record(row, *payloads(3, 30))
    Run.objects.filter(pk__in=[first, second]).delete()

    record(later(row), *payloads(2, 30))

    assert bodies() == [30 * KIB] * 3
    assert used(acme) == counted()


@pytest.mark.usefixtures("counted_at_once")
def test_a_wrong_count_removes_nothing_and_is_corrected(
    row: dict[str, Any], acme: Organisation, settings: Any
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 100 * KIB
    record(row, *payloads(2, 30))
    RunStorage.objects.filter(pk=acme.pk).update(bytes_used=10**12)

    record(later(row), b"x" * 30 * KIB)

    assert bodies() == [30 * KIB] * 3
    assert used(acme) == counted()


@pytest.mark.django_db(transaction=True)
def test_upkeep_on_two_machines_removes_no_more_than_on_one(
    row: dict[str, Any], acme: Organisation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 100 * KIB
    record(row, *payloads(15, 10))
    monkeypatch.setattr(quota, "BATCH_RUNS", 1)

    at_once(2, lambda _: settle_run_bytes())

    assert sum(bodies()) == 90 * KIB
    assert used(acme) == counted()


@pytest.mark.parametrize(
    "text",
    ["\N{GRINNING FACE}" * KIB, "\N{REPLACEMENT CHARACTER}" * KIB, "\1" * KIB, "a" * KIB],
    ids=["emoji", "not UTF-8", "control", "ASCII"],
)
def test_a_run_counts_for_at_least_its_stored_size(row: dict[str, Any], text: str) -> None:
    record(
        row,
        b"x",
        request_query=text,
        request_headers=[["X-Text", text]] * 9,
        logs=[{"at": 1.0, "level": "info", "text": text}] * 9,
        host_calls=[{"name": "store.get", "offsetMs": 1.2, "durationMs": 1.2, "error": text}] * 9,
        error_traceback=text,
    )

    texts = ("request_query", "error_traceback", "request_headers", "logs", "host_calls")
    stored = sum((Octets(Cast(name, TextField())) for name in texts), Length("request_body"))
    run = Run.objects.annotate(kept=stored).get()
    assert run.payload_bytes >= run.kept >= 30 * len(text)


def test_payloads_are_removed_in_batches(
    row: dict[str, Any], acme: Organisation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 0
    record(row, *payloads(7, 1))
    settle_run_bytes()
    monkeypatch.setattr(quota, "BATCH_RUNS", 2)

    limit = used(acme) - 5 * KIB

    assert remove_oldest_payloads(acme.pk, limit) == 5

    assert bodies() == [0] * 5 + [KIB] * 2
    assert used(acme) == counted()


@pytest.mark.django_db(transaction=True)
def test_many_at_once_leave_an_exact_count(
    row: dict[str, Any], acme: Organisation, settings: Any, counted_at_once: None
) -> None:
    settings.RUN_BYTES_PER_ORGANISATION = 40 * KIB

    def record_some(number: int) -> None:
        record(later(row, 100 * number), *payloads(5, 10))

    at_once(6, record_some)

    assert used(acme) == counted() <= 40 * KIB
    assert Run.objects.filter(payload_removed_at=None).count() >= 1
    assert Run.objects.count() == 30


def test_a_deleted_organisation_leaves_no_count(globex: Organisation) -> None:
    settle_run_bytes()
    assert RunStorage.objects.filter(pk=globex.pk).exists()

    globex.delete()

    assert not RunStorage.objects.exists()
