"""System → Background tasks: only superusers see and requeue them."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.test import Client
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts.flows.request_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import User
from accounts.tasks import deliver_pin_over, send_new_device_notice
from core.http.origin import NOWHERE
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, text_of
from tests.factories import make_device_token, work


def fail(task: DBTaskResult, text: str = "core.errors.DeliveryError: not sent by sms") -> None:
    DBTaskResult.objects.filter(pk=task.pk).update(
        status="FAILED",
        started_at=timezone.now(),
        finished_at=timezone.now(),
        worker_ids=["node-a-7-x", "node-b-8-y"],
        traceback=f"Traceback (most recent call last):\n  …\n{text}",
    )


@pytest.fixture
def failed_notice(alice: User) -> DBTaskResult:
    issued = make_device_token(alice)
    DBTaskResult.objects.all().delete()
    send_new_device_notice.enqueue(str(issued.device_token.pk), "192.0.2.7")
    task = DBTaskResult.objects.get()
    fail(task)
    return task


@pytest.fixture
def failed_pin(alice: User) -> DBTaskResult:
    """A delivery that was given up two hours ago."""
    asked_at = timezone.now() - timedelta(hours=2)
    deliver_pin_over.enqueue(alice.email, "email", asked_at.isoformat())
    DBTaskResult.objects.update(enqueued_at=asked_at)
    task = DBTaskResult.objects.get()
    fail(task)
    return task


def state(task: DBTaskResult) -> tuple[str, int]:
    task.refresh_from_db()
    return task.status, len(task.worker_ids)


def test_the_list_describes_failures_in_words(as_root: Client, failed_notice: DBTaskResult) -> None:
    text = text_of(as_root.get(list_of(DBTaskResult)))

    assert "New device notice" in text
    assert "not sent by sms" in text
    assert "node-b-8-y" in text
    assert "Failed" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status__exact": "FAILED"}, True),
        ({"status__exact": "RUNNING"}, False),
        ({"task": "accounts.tasks.send_new_device_notice"}, True),
        ({"task": "accounts.tasks.warn_of_key"}, False),
    ],
)
def test_the_list_is_filtered(
    as_root: Client, failed_notice: DBTaskResult, query: dict[str, str], found: bool
) -> None:
    response = as_root.get(list_of(DBTaskResult), query)

    assert response.status_code == 200
    assert ("node-b-8-y" in text_of(response)) is found


def test_the_page_shows_the_traceback_without_secrets(
    as_root: Client, failed_notice: DBTaskResult
) -> None:
    fail(failed_notice, "ValueError: mhx_0123456789 is no address")

    text = text_of(as_root.get(page_of(failed_notice)))

    assert "Traceback (most recent call last)" in text
    assert "mhx_[redacted] is no address" in text
    assert "0123456789" not in text
    assert page_of(failed_notice, "queue_again") in text


def test_queueing_again_asks_first(as_root: Client, failed_notice: DBTaskResult) -> None:
    response = as_root.get(page_of(failed_notice, "queue_again"))

    assert "New device notice" in text_of(response)
    assert state(failed_notice) == ("FAILED", 2)


def test_root_queues_a_failed_task_again_and_it_is_done(
    as_root: Client, failed_notice: DBTaskResult, alice: User
) -> None:
    response = as_root.post(page_of(failed_notice, "queue_again"), CONFIRMED)
    queued = state(failed_notice)
    work()

    assert response.status_code == 302
    assert queued == ("READY", 0)
    assert state(failed_notice) == ("SUCCESSFUL", 1)
    assert [message.to for message in mail.outbox] == [[alice.delivery_email]]
    assert LogEntry.objects.get().change_message == "Queued again."


def test_root_queues_selected_tasks_again(as_root: Client, failed_notice: DBTaskResult) -> None:
    action = action_on(failed_notice, "queue_selected_again")
    unconfirmed = {name: value for name, value in action.items() if name not in CONFIRMED}

    asked = as_root.post(list_of(DBTaskResult), unconfirmed)
    before = state(failed_notice)
    response = as_root.post(list_of(DBTaskResult), action)

    assert "New device notice" in text_of(asked)
    assert before == ("FAILED", 2)
    assert response.status_code == 302
    assert state(failed_notice) == ("READY", 0)


def test_a_task_that_is_done_is_not_queued_again(
    as_root: Client, failed_notice: DBTaskResult
) -> None:
    DBTaskResult.objects.update(status="SUCCESSFUL")

    one = as_root.post(page_of(failed_notice, "queue_again"), CONFIRMED)
    as_root.post(list_of(DBTaskResult), action_on(failed_notice, "queue_selected_again"))

    assert one.status_code == 403
    assert state(failed_notice) == ("SUCCESSFUL", 2)
    assert not LogEntry.objects.exists()


def test_a_pin_queued_again_after_its_life_is_a_new_code(
    as_root: Client, failed_pin: DBTaskResult
) -> None:
    as_root.post(page_of(failed_pin, "queue_again"), CONFIRMED)
    work()

    assert state(failed_pin) == ("SUCCESSFUL", 1)
    assert len(mail.outbox) == 1


def test_a_pin_is_not_queued_again_beyond_its_addresss_limits(
    as_root: Client, failed_pin: DBTaskResult, alice: User
) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)

    response: Any = as_root.post(page_of(failed_pin, "queue_again"), CONFIRMED, follow=True)

    assert "reached its limit of codes" in text_of(response)
    assert state(failed_pin) == ("FAILED", 2)


def test_bob_neither_sees_nor_queues_anything(as_bob: Client, failed_notice: DBTaskResult) -> None:
    responses = [
        as_bob.get(list_of(DBTaskResult)),
        as_bob.get(page_of(failed_notice)),
        as_bob.post(page_of(failed_notice, "queue_again"), CONFIRMED),
        as_bob.post(list_of(DBTaskResult), action_on(failed_notice, "queue_selected_again")),
    ]

    assert [response.status_code for response in responses] == [403] * 4
    assert all("alice" not in text_of(response) for response in responses)
    assert state(failed_notice) == ("FAILED", 2)


def test_tasks_cannot_be_added_changed_or_deleted(
    as_root: Client, failed_notice: DBTaskResult
) -> None:
    responses = [
        as_root.post(list_of(DBTaskResult, "add"), {}),
        as_root.post(page_of(failed_notice), {"status": "READY"}),
        as_root.post(page_of(failed_notice, "delete"), {"post": "yes"}),
    ]

    assert [response.status_code for response in responses] == [403] * 3
    assert state(failed_notice) == ("FAILED", 2)
