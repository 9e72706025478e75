"""A message waits neither for queued runs, nor for messages that a server holds up."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.utils import timezone

from accounts.flows.notices import send_change_notice
from accounts.flows.send_pin import deliver_pin, request_pin
from accounts.messages.channels import SendVia
from accounts.models import User
from core.http.origin import NOWHERE
from jobs.messages.runner import THREADS_PER_QUEUE
from jobs.models import Message, QueueEntry
from jobs.queue.enqueue import QueuedWork, enqueue_all
from scripts_engine.models import Script, Trigger
from scripts_engine.runs.spec import Event
from tests.eventually import eventually
from tests.factories import make_script
from tests.jobs.messages.running import running_messages
from tests.jobs_runner import JobsRunner
from tests.servers import MailServer, SmsGateway

pytestmark = pytest.mark.django_db(transaction=True)

BUSY = "local began = os.clock() while os.clock() - began < 0.05 do end return ''"
FLOOD = 400


@pytest.mark.slow
def test_a_code_is_sent_beside_a_flood_of_queued_runs(alice: User) -> None:
    queue_runs(make_script(alice.home, source=BUSY), FLOOD)
    with (
        MailServer().running() as mail_server,
        JobsRunner(EMAIL_URL=mail_server.url, QUEUE_SLOTS="1").running(),
    ):
        eventually(lambda: QueueEntry.objects.leased().exists())
        request_pin(alice.email, SendVia.EMAIL, NOWHERE)
        eventually(lambda: mail_server.messages)
        waiting = QueueEntry.objects.count()

    assert waiting > 0


def queue_runs(script: Script, number: int) -> None:
    work = QueuedWork(
        organisation_id=script.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=Event("POST", "", (), b"", ""),
        trigger=Trigger.QUEUE,
    )
    enqueue_all([work] * number)


def test_a_mail_server_that_does_not_answer_holds_up_neither_sms_nor_notices(
    alice: User, sms_gateway: SmsGateway, settings: Any
) -> None:
    settings.SMS_URL = sms_gateway.url
    for _ in range(2 * THREADS_PER_QUEUE):
        enqueue_code(alice, "email")
    with silent_mail_server(settings), running_messages() as runner:
        eventually(lambda: running("email") == THREADS_PER_QUEUE)
        enqueue_code(alice, "sms")
        send_change_notice.enqueue(str(alice.pk), alice.email, ["phone"])
        eventually(lambda: Message.objects.get(queue="sms").status == "SUCCESSFUL")
        eventually(lambda: running("default") == 1)
        states = [len(sms_gateway.messages), running("email"), waiting("email")]
        runner.abandon()
    eventually(have_ended)

    assert states == [1, THREADS_PER_QUEUE, THREADS_PER_QUEUE]
    assert [running("email"), waiting("email")] == [0, 2 * THREADS_PER_QUEUE]


def enqueue_code(user: User, channel: str) -> None:
    asked_at = timezone.now().isoformat()
    deliver_pin.using(queue_name=channel).enqueue(user.email, channel, channel, asked_at)


@contextmanager
def silent_mail_server(settings: Any) -> Iterator[None]:
    """Accepts connections and sends nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = listener.getsockname()
        settings.EMAIL_TIMEOUT = 120
        yield


def running(queue: str) -> int:
    return Message.objects.running().filter(queue=queue).count()


def waiting(queue: str) -> int:
    return Message.objects.due().filter(queue=queue).count()


def have_ended() -> bool:
    return "message" not in [thread.name for thread in threading.enumerate()]
