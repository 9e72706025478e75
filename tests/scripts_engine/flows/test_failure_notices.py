"""Administrators are told when a script starts to fail and when it works again."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.db import connection
from django.utils import timezone

from accounts.models import Organisation, User
from hooks.models import Hook
from scripts_engine.flows import failure_notices
from scripts_engine.flows.failure_notices import tell_of_failures
from scripts_engine.models import FailureNotice, Run, RunStatus, Script, Trigger
from tests.concurrency import at_once
from tests.factories import (
    hook_that,
    make_hook,
    make_organisation,
    make_past_run,
    make_script,
    make_user,
    work,
)
from tests.working_queue import queue, work_all, work_queue

pytestmark = pytest.mark.django_db


@pytest.fixture
def hook(acme: Organisation, bob: User) -> Hook:
    """A hook of an organisation that wants mails about failing scripts."""
    want_mails(acme)
    return make_hook(make_script(acme)).hook


def want_mails(organisation: Organisation) -> None:
    organisation.failure_mails = True
    organisation.save()


def run(hook: Hook, status: str, **fields: Any) -> Run:
    return make_past_run(hook, timezone.now(), status, **fields)


def an_hour_later() -> None:
    FailureNotice.objects.update(sent_at=timezone.now() - timedelta(minutes=61))


def subjects() -> list[str]:
    work()
    return [message.subject for message in mail.outbox]


def test_administrators_are_told_of_a_script_that_fails(
    hook: Hook, alice: User, bob: User, charlie: User
) -> None:
    run(hook, "succeeded")
    before = tell_of_failures()
    failed = run(hook, "failed")

    assert (before, tell_of_failures()) == (0, 1)
    assert subjects() == ["The script “echo” fails"]
    assert mail.outbox[0].to == [bob.delivery_email]
    assert f"/admin/scripts_engine/run/{failed.pk}/change/" in str(mail.outbox[0].body)
    assert "of Acme fails" in str(mail.outbox[0].body)


def test_a_script_that_keeps_failing_is_not_mentioned_again(hook: Hook) -> None:
    run(hook, "failed")
    tell_of_failures()
    an_hour_later()
    run(hook, "timed-out")

    assert tell_of_failures() == 0
    assert len(subjects()) == 1


def test_administrators_are_told_when_it_works_again(hook: Hook) -> None:
    run(hook, "out-of-memory")
    tell_of_failures()
    an_hour_later()
    run(hook, "succeeded")

    assert tell_of_failures() == 1
    assert subjects() == ["The script “echo” fails", "The script “echo” works again"]


def test_a_script_causes_one_mail_an_hour(hook: Hook) -> None:
    run(hook, "failed")
    tell_of_failures()
    run(hook, "succeeded")
    within = tell_of_failures()
    run(hook, "failed")
    an_hour_later()

    # It fails again, as its administrators know.
    assert (within, tell_of_failures()) == (0, 0)
    assert len(subjects()) == 1


def test_a_clock_that_was_set_back_delays_no_mail(hook: Hook) -> None:
    run(hook, "failed")
    tell_of_failures()
    FailureNotice.objects.update(sent_at=timezone.now() + timedelta(days=1))
    run(hook, "succeeded")

    assert tell_of_failures() == 1


def test_an_organisation_gets_no_such_mails_unless_it_wants_them(acme: Organisation) -> None:
    run(make_hook(make_script(acme)).hook, "failed")

    assert tell_of_failures() == 0
    assert not FailureNotice.objects.exists()


def test_an_inactive_organisation_and_a_deleted_script_cause_no_mail(hook: Hook) -> None:
    run(hook, "failed")
    Organisation.objects.update(is_active=False)
    inactive = tell_of_failures()
    Organisation.objects.update(is_active=True)
    Script.objects.update(deleted_at=timezone.now())

    assert (inactive, tell_of_failures()) == (0, 0)


def test_each_organisation_hears_of_its_own_scripts(hook: Hook) -> None:
    globex = make_organisation("Globex")
    other = make_user(globex, "dora@example.org", name="Dora", role="administrator")
    want_mails(globex)
    run(make_hook(make_script(globex)).hook, "failed")
    tell_of_failures()
    work()

    assert [message.to for message in mail.outbox] == [[other.delivery_email]]


@pytest.mark.parametrize("trigger", [Trigger.ADMIN, Trigger.ADMIN_GRAPHQL, Trigger.TEST])
def test_runs_that_somebody_watches_are_no_news(hook: Hook, trigger: str) -> None:
    run(hook, "failed")
    Run.objects.update(trigger=trigger)

    assert tell_of_failures() == 0


def test_failures_of_long_ago_are_no_news(hook: Hook) -> None:
    make_past_run(hook, timezone.now() - timedelta(days=2), "failed")

    assert tell_of_failures() == 0


def test_a_queued_run_fails_with_its_last_attempt(acme: Organisation, bob: User) -> None:
    want_mails(acme)
    queue(hook_that(acme, "error('always')"), max_attempts=2)
    work_queue()
    after_first = tell_of_failures()
    work_all()

    assert (after_first, tell_of_failures()) == (0, 1)
    assert subjects() == ["The script “echo” fails"]


def test_runs_that_wait_say_nothing(hook: Hook) -> None:
    run(hook, "failed")
    queue(hook)

    assert tell_of_failures() == 1


def test_nobody_gets_more_than_the_limit(hook: Hook) -> None:
    for _ in range(21):
        run(make_hook(make_script(hook.organisation)).hook, "failed")

    assert tell_of_failures() == 21
    assert len(subjects()) == 20


def test_who_is_no_administrator_any_more_gets_no_mail(hook: Hook, bob: User) -> None:
    run(hook, "failed")
    tell_of_failures()
    bob.memberships.all().delete()

    assert subjects() == []


def test_scripts_are_looked_at_in_batches(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_notices, "_SCRIPTS_AT_ONCE", 2)
    for _ in range(4):
        run(make_hook(make_script(hook.organisation)).hook, "failed")

    assert tell_of_failures() == 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_of_several_machines_one_sends_the_mail(hook: Hook) -> None:
    run(hook, "failed")

    assert sum(at_once(4, lambda _: tell_of_failures())) == 1
    assert FailureNotice.objects.get().is_failing


def test_every_failing_status_counts(hook: Hook) -> None:
    run(hook, RunStatus.LOST, attempt=1, is_dead_letter=True)

    assert tell_of_failures() == 1
