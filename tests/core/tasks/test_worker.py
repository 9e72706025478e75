"""The worker in processes: killed, stopped, with endless tasks, and several at once."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts.flows.request_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import AuthEvent, PinCode, User
from accounts.tasks import deliver_pin, deliver_pin_over
from core.http.origin import NOWHERE
from tests.background_worker import BackgroundWorker
from tests.eventually import eventually
from tests.servers import MailServer, SmsGateway

pytestmark = pytest.mark.django_db(transaction=True)


def delivery() -> DBTaskResult:
    return DBTaskResult.objects.get(task_path=deliver_pin_over.module_path)


def a_minute_passes(task: DBTaskResult) -> None:
    began = task.started_at - timedelta(minutes=1)
    DBTaskResult.objects.filter(pk=task.pk).update(started_at=began)


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
def a_server_that_never_answers() -> Iterator[str]:
    """Yields the address of a server that accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"smtp://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_another_worker_takes_over_the_task_of_a_killed_one(
    alice: User, sms_gateway: SmsGateway
) -> None:
    sms_gateway.hangs.set()
    with BackgroundWorker(SMS_URL=sms_gateway.url).running() as first:
        request_pin(alice.email, SendVia.SMS, NOWHERE)
        eventually(lambda: sms_gateway.asked == 1)
        first.kill()
        sms_gateway.hangs.clear()
        eventually(lambda: len(sms_gateway.messages) == 1)
    killed = delivery()
    a_minute_passes(killed)
    with BackgroundWorker(SMS_URL=sms_gateway.url).running():
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
        BackgroundWorker(EMAIL_URL=url, TASK_TIMEOUT="3", TASK_RETRIES="300").running(),
    ):
        request_pin(alice.email, SendVia.EMAIL, NOWHERE)
        eventually(lambda: DBTaskResult.objects.exclude(traceback="").exists())

    assert delivery().status == "READY"
    assert AuthEvent.objects.get(kind="pin.not-sent").reason.startswith("not sent by email")


@pytest.mark.slow
def test_a_second_sigterm_returns_the_task_to_the_queue(alice: User) -> None:
    with a_server_that_never_answers() as url, BackgroundWorker(EMAIL_URL=url).running() as worker:
        request_pin(alice.email, SendVia.EMAIL, NOWHERE)
        eventually(delivery_is_running)
        worker.process.send_signal(signal.SIGTERM)
        eventually(lambda: "shutting down gracefully" in worker.output)
        worker.process.send_signal(signal.SIGTERM)
        worker.process.wait(timeout=30)

    assert delivery().status == "READY"
    assert delivery().run_after <= timezone.now()


def delivery_is_running() -> bool:
    return DBTaskResult.objects.filter(
        task_path=deliver_pin_over.module_path, status="RUNNING"
    ).exists()


@pytest.mark.slow
def test_each_task_is_done_by_one_of_several_workers(alice: User) -> None:
    with MailServer().running() as mail_server:
        for _ in range(30):
            deliver_pin.enqueue("nobody@example.com", "email")
        deliver_pin.enqueue(alice.email, "email")
        with (
            BackgroundWorker(EMAIL_URL=mail_server.url).running(),
            BackgroundWorker(EMAIL_URL=mail_server.url).running(),
            BackgroundWorker(EMAIL_URL=mail_server.url).running(),
        ):
            eventually(lambda: DBTaskResult.objects.filter(status="SUCCESSFUL").count() == 62)

    attempts = [len(row.worker_ids) for row in DBTaskResult.objects.all()]
    assert attempts == [1] * 62
    assert len(mail_server.messages) == 1
