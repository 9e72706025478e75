"""Failures grouped by script and error."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.models import Hook
from scripts_engine import failures
from scripts_engine.models import Run, Script, Trigger
from tests import factories
from tests.factories import hook_that

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def failed(hook: Hook, minute: int, error: str = "", status: str = "failed") -> Run:
    at = NOON + timedelta(minutes=minute)
    return factories.make_past_run(hook, at, status, error_message=error)


def grouped(limit: int = 5) -> list[tuple[int, Run]]:
    found = failures.failure_groups(Run.objects.failed(), limit)
    return [(group.failures, group.last) for group in found.groups]


def test_the_most_frequent_error_comes_first_with_its_newest_run(acme: Organisation) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "no such order")
    last_order = failed(hook, 2, "no such order")
    last_tea = failed(hook, 3, "no tea")
    factories.make_past_run(hook, NOON)

    assert grouped() == [(2, last_order), (1, last_tea)]


def test_errors_that_differ_in_numbers_and_ids_are_one(acme: Organisation) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "no order 17 of 3f2b6a0e-8a55-4b6c-9d9e-2f0c9d8f5a11\nand more")
    last = failed(hook, 2, "no order 4.5 of 00000000-8A55-4b6c-9d9e-2f0c9d8f5a11\nand other lines")

    assert grouped() == [(2, last)]


@pytest.mark.parametrize("other", ["no order", "no order 17!", "No order 17", "order 17"])
def test_errors_with_other_words_are_others(acme: Organisation, other: str) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "no order 17")
    failed(hook, 2, other)

    assert [count for count, _ in grouped()] == [1, 1]


def test_the_same_error_of_another_script_or_outcome_is_another(acme: Organisation) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "stopped")
    failed(hook, 2, "stopped", "timed-out")
    failed(hook_that(acme, name="other"), 3, "stopped")

    assert [count for count, _ in grouped()] == [1, 1, 1]


def test_failures_of_drafts_tests_and_deleted_scripts_are_left_out(acme: Organisation) -> None:
    tested = hook_that(acme, name="tested")
    factories.make_past_run(tested, NOON, "failed", trigger=Trigger.TEST)
    deleted = hook_that(acme, name="deleted")
    failed(deleted, 1)
    Script.objects.filter(pk=deleted.script_id).update(deleted_at=timezone.now())
    factories.make_past_draft(hook_that(acme), NOON, "failed")

    assert grouped() == []


def test_only_the_newest_failures_are_examined(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "an old error")
    second, third = failed(hook, 2), failed(hook, 3)
    monkeypatch.setattr(failures, "NEWEST_FAILURES", 2)

    found = failures.failure_groups(Run.objects.failed(), 5)
    kind = failures.error_kind_of(third.script_id, third.status, "")

    assert [(group.failures, group.last) for group in found.groups] == [(2, third)]
    assert found.is_cut
    assert failures.failures_like(Run.objects.failed(), kind) == [third.pk, second.pk]


def test_at_most_the_limit_of_groups_is_read(acme: Organisation) -> None:
    hook = hook_that(acme)
    failed(hook, 1, "a")
    failed(hook, 2, "b")

    assert len(grouped(limit=1)) == 1


def test_a_long_error_is_cut_alike_by_python_and_the_database(acme: Organisation) -> None:
    run = failed(hook_that(acme), 1, "\n" * 100 + "ä" * 4000)

    kind = failures.error_kind_of(run.script_id, run.status, run.error_message)

    assert kind.error == "ä" * failures.MAX_ERROR_LENGTH
    assert failures.failures_like(Run.objects.failed(), kind) == [run.pk]


def test_only_the_given_runs_are_grouped(acme: Organisation, globex: Organisation) -> None:
    failed(hook_that(globex), 1, "of Globex")

    found = failures.failure_groups(Run.objects.of_organisation(acme).failed(), 5)

    assert found.groups == []
    assert not found.is_cut
