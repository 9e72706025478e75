"""Old runs are deleted by age and by number, as set for the organisation or installation."""

from datetime import timedelta
from typing import Any, Self

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Organisation
from core.database import batches
from core.database.ids import first_id_at
from scripts_engine.models import Run, Script
from scripts_engine.runs.retention import forget_old_runs
from tests.concurrency import at_once
from tests.factories import make_organisation, make_script

MEGABYTE = 1_000_000


def make_runs(script: Script, *days: float) -> list[str]:
    """Creates runs of so many days ago; returns their keys."""
    return [str(make_run(script, number, day).pk) for number, day in enumerate(days)]


def make_run(script: Script, number: int, day: float) -> Run:
    moment = timezone.now() - timedelta(days=day)
    first = first_id_at(moment)
    return Run.objects.create(
        id=type(first)(int=first.int + number + (script.organisation.pk.int & 0xFFFF) * 1000),
        organisation=script.organisation,
        script=script,
        script_version=script.current_version,
        trigger="hook",
        status="succeeded",
        started_at=moment,
        queued_ms=0,
        duration_ms=1,
        request_method="POST",
        request_body=b"",
        response_status=200,
        response_body=b"",
    )


def left(organisation: Organisation) -> list[str]:
    return [str(pk) for pk in organisation.runs.order_by("-id").values_list("pk", flat=True)]


def test_runs_older_than_the_limit_are_deleted(
    script: Script, acme: Organisation, settings: Any
) -> None:
    settings.RUNS_KEPT_DAYS = 30
    runs = make_runs(script, 0, 29.9, 30.1, 400)

    assert forget_old_runs() == 2
    assert left(acme) == runs[:2]


def test_the_oldest_runs_beyond_the_limit_are_deleted(
    script: Script, acme: Organisation, settings: Any
) -> None:
    settings.RUNS_KEPT_DAYS, settings.RUNS_KEPT_PER_ORGANISATION = 0, 3
    runs = make_runs(script, 1, 2, 3, 4, 5)

    assert forget_old_runs() == 2
    assert left(acme) == runs[:3]


def test_exactly_the_number_stays(script: Script, acme: Organisation, settings: Any) -> None:
    settings.RUNS_KEPT_PER_ORGANISATION = 3
    make_runs(script, 1, 2, 3)

    assert forget_old_runs() == 0


def test_a_limit_of_zero_keeps_all_runs(script: Script, settings: Any) -> None:
    settings.RUNS_KEPT_DAYS = settings.RUNS_KEPT_PER_ORGANISATION = 0
    make_runs(script, 1, 4000)

    assert forget_old_runs() == 0


def test_an_organisation_has_its_own_days_and_number(
    script: Script, acme: Organisation, globex: Organisation, settings: Any
) -> None:
    settings.RUNS_KEPT_DAYS, settings.RUNS_KEPT_PER_ORGANISATION = 30, 2
    other = make_runs(make_script(globex), 1, 2, 3)
    own = make_runs(script, 1, 2, 3, 50)
    Organisation.objects.filter(pk=acme.pk).update(runs_kept_days=60, runs_kept=0)
    forget_old_runs()

    assert left(acme) == own
    assert left(globex) == other[:2]


def test_an_organisation_may_keep_less(script: Script, acme: Organisation) -> None:
    runs = make_runs(script, 0.5, 2, 3)
    Organisation.objects.filter(pk=acme.pk).update(runs_kept_days=1)
    forget_old_runs()

    assert left(acme) == runs[:1]


def test_runs_are_deleted_in_batches(
    script: Script, acme: Organisation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts_engine.runs.retention.BATCH_RUNS", 2)
    settings.RUNS_KEPT_PER_ORGANISATION = 1
    runs = make_runs(script, 1, 2, 3, 4, 5, 6)

    assert forget_old_runs() == 5
    assert left(acme) == runs[:1]


def test_a_transaction_deletes_a_few_megabytes_and_reads_none(
    script: Script, acme: Organisation, settings: Any
) -> None:
    settings.RUNS_KEPT_DAYS = 30
    make_runs(script, *[40] * 6)
    Run.objects.update(request_body=b"x" * MEGABYTE, payload_bytes=MEGABYTE)

    with Statements() as statements:
        assert forget_old_runs() == 6

    assert statements.deleted == [4, 2]
    assert not any('."request_body",' in sql for sql in statements.all)
    assert left(acme) == []


class Statements:
    """Notes statements, and how many runs each of them deletes."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self.deleted: list[int] = []
        self._noting = connection.execute_wrapper(self._note)

    def _note(self, execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        result = execute(sql, parameters, many, context)
        self.all.append(sql)
        if sql.startswith(f'DELETE FROM "{Run._meta.db_table}"'):
            self.deleted.append(context["cursor"].rowcount)
        return result

    def __enter__(self) -> Self:
        self._noting.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._noting.__exit__(*error)


@pytest.mark.django_db(transaction=True)
def test_two_machines_delete_each_run_once(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts_engine.runs.retention.BATCH_RUNS", 3)
    monkeypatch.setattr(batches, "PAUSE_FACTOR", 0)
    settings.RUNS_KEPT_PER_ORGANISATION = 10
    organisation = make_organisation()
    runs = make_runs(make_script(organisation), *(day / 10 for day in range(100)))
    counts = at_once(2, lambda _: forget_old_runs())

    assert sum(counts) == 90
    assert left(organisation) == runs[:10]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_runs_locked_by_another_machine_are_skipped(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RUNS_KEPT_PER_ORGANISATION = 1
    organisation = make_organisation()
    runs = make_runs(make_script(organisation), 1, 2, 3)
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT 1 FROM scripts_engine_run WHERE id = %s FOR UPDATE", [runs[2]])
        [count] = at_once(1, lambda _: forget_old_runs())
        cursor.execute("ROLLBACK")

    assert count == 1
    assert left(organisation) == [runs[0], runs[2]]
