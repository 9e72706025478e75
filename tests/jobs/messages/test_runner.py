"""The runner of messages: killed, stopped, with endless messages, and several at once."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.flows.send_pin import deliver_pin, request_pin
from accounts.messages.channels import SendVia
from accounts.models import AuthEvent, PinCode, User
from core.http.origin import NOWHERE
from jobs.models import Message
from tests.eventually import eventually
from tests.jobs.messages.running import running_messages
from tests.jobs_runner import JobsRunner
from tests.servers import MailServer, SmsGateway

pytestmark = pytest.mark.django_db(transaction=True)


def delivery() -> Message:
    return Message.objects.get()


def a_minute_passes(task: Message) -> None:
    began = task.started_at - timedelta(minutes=1)
    Message.objects.filter(pk=task.pk).update(started_at=began)


@contextmanager
def a_server_of_a_byte_at_a_time() -> Iterator[str]:
    """Yields the address of a server with an endless greeting, which no socket timeout ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_trickle, args=(listener,), daemon=True).start()
        yield f"smtp://127.0.0.1:{listener.getsockname()[1]}"


def _trickle(listener: socket.socket) -> None:
    with suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            while True:
                connection.send(b"2")
                time.sleep(0.1)


@contextmanager
def a_server_that_never_answers() -> Iterator[int]:
    """Yields the port of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.slow
def test_another_worker_takes_over_the_task_of_a_killed_one(
    alice: User, sms_gateway: SmsGateway
) -> None:
    sms_gateway.hangs.set()
    with JobsRunner(SMS_URL=sms_gateway.url).running() as first:
        request_pin(alice.email, SendVia.SMS, NOWHERE)
        eventually(lambda: sms_gateway.asked == 1)
        first.kill()
        sms_gateway.hangs.clear()
        eventually(lambda: len(sms_gateway.messages) == 1)
    killed = delivery()
    a_minute_passes(killed)
    with JobsRunner(SMS_URL=sms_gateway.url).running():
        eventually(lambda: delivery().status == "SUCCESSFUL")

    # The gateway had accepted the first message, which the workers cannot know.
    first_message, second_message = sms_gateway.messages
    assert killed.status == "RUNNING"
    assert first_message["text"] == second_message["text"]
    assert PinCode.objects.count() == 1
    assert len(set(delivery().worker_ids)) == 2


@pytest.mark.slow
def test_an_endless_delivery_is_interrupted(alice: User) -> None:
    with (
        a_server_of_a_byte_at_a_time() as url,
        JobsRunner(EMAIL_URL=url, TASK_TIMEOUT="3", TASK_RETRIES="300").running(),
    ):
        request_pin(alice.email, SendVia.EMAIL, NOWHERE)
        eventually(lambda: Message.objects.exclude(traceback="").exists())

    assert delivery().status == "READY"
    assert AuthEvent.objects.get(kind="pin.not-sent").reason.startswith("not sent by email")


def test_a_runner_that_gives_up_returns_its_messages_to_the_queue(
    alice: User, settings: Any
) -> None:
    with a_server_that_never_answers() as port:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", port, 60
        request_pin(alice.email, SendVia.EMAIL, NOWHERE)
        with running_messages() as runner:
            eventually(delivery_is_running)
            runner.abandon()

        state, due_at = delivery().status, delivery().due_at
    eventually(lambda: "message" not in [each.name for each in threading.enumerate()])

    assert (state, delivery().status) == ("READY", "READY")
    assert due_at <= timezone.now()


def delivery_is_running() -> bool:
    return Message.objects.running().exists()


@pytest.mark.slow
def test_each_task_is_done_by_one_of_several_workers(alice: User) -> None:
    with MailServer().running() as mail_server:
        for _ in range(30):
            enqueue_mail("nobody@example.com")
        enqueue_mail(alice.email)
        with (
            JobsRunner(EMAIL_URL=mail_server.url).running(),
            JobsRunner(EMAIL_URL=mail_server.url).running(),
            JobsRunner(EMAIL_URL=mail_server.url).running(),
        ):
            eventually(lambda: Message.objects.filter(status="SUCCESSFUL").count() == 31)

    attempts = [len(row.worker_ids) for row in Message.objects.all()]
    assert attempts == [1] * 31
    assert len(mail_server.messages) == 1


def enqueue_mail(email: str) -> None:
    asked_at = timezone.now().isoformat()
    deliver_pin.using(queue_name="email").enqueue(email, "email", "email", asked_at)
