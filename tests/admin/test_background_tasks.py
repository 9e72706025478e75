"""System → Background tasks: only superusers see and requeue them."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts.flows.notices import send_new_device_notice
from accounts.flows.send_pin import count_send_to, deliver_pin, request_pin
from accounts.messages.channels import SendVia
from accounts.models import User
from core.errors import RateLimitedError
from core.http.origin import NOWHERE
from jobs.models import Message
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, text_of
from tests.factories import make_device_token, work

pytestmark = pytest.mark.postgresql


def fail(task: Message, text: str = "core.errors.DeliveryError: not sent by sms") -> None:
    Message.objects.filter(pk=task.pk).update(
        status="FAILED",
        started_at=timezone.now(),
        finished_at=timezone.now(),
        worker_ids=["node-a-7-x", "node-b-8-y"],
        traceback=f"Traceback (most recent call last):\n  …\n{text}",
    )


@pytest.fixture
def failed_notice(alice: User) -> Message:
    issued = make_device_token(alice)
    Message.objects.all().delete()
    send_new_device_notice.enqueue(str(issued.device_token.pk), "192.0.2.7")
    task = Message.objects.get()
    fail(task)
    return task


@pytest.fixture
def failed_pin(alice: User) -> Message:
    """A delivery that was given up two hours ago."""
    asked_at = timezone.now() - timedelta(hours=2)
    deliver_pin.enqueue(alice.email, "email", "email", asked_at.isoformat())
    Message.objects.update(enqueued_at=asked_at)
    task = Message.objects.get()
    fail(task)
    return task


def state(task: Message) -> tuple[str, int]:
    task.refresh_from_db()
    return task.status, len(task.worker_ids)


def test_the_list_describes_failures_in_words(as_root: Client, failed_notice: Message) -> None:
    text = text_of(as_root.get(list_of(Message)))

    assert "New device notice" in text
    assert "not sent by sms" in text
    assert "node-b-8-y" in text
    assert "Failed" in text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status__exact": "FAILED"}, True),
        ({"status__exact": "RUNNING"}, False),
        ({"task": "accounts.flows.notices.send_new_device_notice"}, True),
        ({"task": "accounts.flows.notices.warn_of_key"}, False),
    ],
)
def test_the_list_is_filtered(
    as_root: Client, failed_notice: Message, query: dict[str, str], found: bool
) -> None:
    response = as_root.get(list_of(Message), query)

    assert response.status_code == 200
    assert ("node-b-8-y" in text_of(response)) is found


def test_the_page_shows_the_traceback_without_secrets(
    as_root: Client, failed_notice: Message
) -> None:
    fail(failed_notice, "ValueError: mhx_0123456789 is no address")

    text = text_of(as_root.get(page_of(failed_notice)))

    assert "Traceback (most recent call last)" in text
    assert "mhx_[redacted] is no address" in text
    assert "0123456789" not in text
    assert page_of(failed_notice, "queue_again") in text


def test_queueing_again_asks_first(as_root: Client, failed_notice: Message) -> None:
    response = as_root.get(page_of(failed_notice, "queue_again"))

    assert "New device notice" in text_of(response)
    assert state(failed_notice) == ("FAILED", 2)


def test_root_queues_a_failed_task_again_and_it_is_done(
    as_root: Client, failed_notice: Message, alice: User
) -> None:
    response = as_root.post(page_of(failed_notice, "queue_again"), CONFIRMED)
    queued = state(failed_notice)
    work()

    assert response.status_code == 302
    assert queued == ("READY", 0)
    assert state(failed_notice) == ("SUCCESSFUL", 1)
    assert [message.to for message in mail.outbox] == [[alice.delivery_email]]
    assert LogEntry.objects.get().change_message == "Queued again."


def test_root_queues_selected_tasks_again(as_root: Client, failed_notice: Message) -> None:
    action = action_on(failed_notice, "queue_selected_again")
    unconfirmed = {name: value for name, value in action.items() if name not in CONFIRMED}

    asked = as_root.post(list_of(Message), unconfirmed)
    before = state(failed_notice)
    response = as_root.post(list_of(Message), action)

    assert "New device notice" in text_of(asked)
    assert before == ("FAILED", 2)
    assert response.status_code == 302
    assert state(failed_notice) == ("READY", 0)


def test_a_task_that_is_done_is_not_queued_again(as_root: Client, failed_notice: Message) -> None:
    Message.objects.update(status="SUCCESSFUL")

    one = as_root.post(page_of(failed_notice, "queue_again"), CONFIRMED)
    as_root.post(list_of(Message), action_on(failed_notice, "queue_selected_again"))

    assert one.status_code == 403
    assert state(failed_notice) == ("SUCCESSFUL", 2)
    assert not LogEntry.objects.exists()


def test_a_pin_queued_again_after_its_life_is_a_new_code(
    as_root: Client, failed_pin: Message
) -> None:
    as_root.post(page_of(failed_pin, "queue_again"), CONFIRMED)
    work()

    assert state(failed_pin) == ("SUCCESSFUL", 1)
    assert len(mail.outbox) == 1


def test_a_pin_is_not_queued_again_beyond_its_addresss_limits(
    as_root: Client, failed_pin: Message, alice: User
) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)

    response: Any = as_root.post(page_of(failed_pin, "queue_again"), CONFIRMED, follow=True)

    assert "reached its limit of codes" in text_of(response)
    assert state(failed_pin) == ("FAILED", 2)


def test_a_pin_of_a_known_device_counts_in_that_devices_limits(
    as_root: Client, failed_pin: Message, alice: User
) -> None:
    device = uuid.uuid4()
    make_device_token(alice, device)
    Message.objects.filter(pk=failed_pin.pk).update(
        arguments={**failed_pin.arguments, "kwargs": {"device": str(device)}}
    )
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)

    as_root.post(page_of(failed_pin, "queue_again"), CONFIRMED)

    assert state(failed_pin) == ("READY", 0)
    with pytest.raises(RateLimitedError):
        count_send_to(alice.email, device)


def test_bob_neither_sees_nor_queues_anything(as_bob: Client, failed_notice: Message) -> None:
    responses = [
        as_bob.get(list_of(Message)),
        as_bob.get(page_of(failed_notice)),
        as_bob.post(page_of(failed_notice, "queue_again"), CONFIRMED),
        as_bob.post(list_of(Message), action_on(failed_notice, "queue_selected_again")),
    ]

    assert [response.status_code for response in responses] == [403] * 4
    assert all("alice" not in text_of(response) for response in responses)
    assert state(failed_notice) == ("FAILED", 2)


def test_tasks_cannot_be_added_changed_or_deleted(as_root: Client, failed_notice: Message) -> None:
    responses = [
        as_root.post(list_of(Message, "add"), {}),
        as_root.post(page_of(failed_notice), {"status": "READY"}),
        as_root.post(page_of(failed_notice, "delete"), {"post": "yes"}),
    ]

    assert [response.status_code for response in responses] == [403] * 3
    assert state(failed_notice) == ("FAILED", 2)


def test_the_former_address_leads_to_the_list(as_root: Client) -> None:
    former = "/admin/django_tasks_database/dbtaskresult/?status__exact=FAILED"

    response = as_root.get(former, follow=True)

    assert response.redirect_chain == [(f"{list_of(Message)}?status__exact=FAILED", 301)]
    assert response.status_code == 200
