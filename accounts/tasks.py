"""Background work. Arguments are kept readable by the task queue: never a secret among them.

A task that raises ``TryAgainError`` is tried again later; one whose worker was killed too. So each
must bear being done twice: what is sent twice is the same message.

``request_id`` names the request that asked for it, in every event of the task.
"""

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django_tasks import TaskContext, task

from accounts.flows.notices import notify_invitation, notify_new_device, send_expiry_warning
from accounts.flows.send_pin import choose_pin_channels, send_pin
from accounts.messages.channels import Channel, SendVia


@task(takes_context=True)
def deliver_pin(context: TaskContext, email: str, send_via: str, *, request_id: str = "") -> None:
    """Makes a delivery of its own for each channel, so that one is tried without the other."""
    asked_at = context.task_result.enqueued_at or timezone.now()
    channels = choose_pin_channels(email, SendVia(send_via), asked_at)
    with transaction.atomic():
        for channel in channels:
            deliver_pin_over.enqueue(email, channel, asked_at.isoformat(), request_id=request_id)


@task()
def deliver_pin_over(email: str, channel: str, asked_at: str, *, request_id: str = "") -> None:
    send_pin(email, Channel(channel), datetime.fromisoformat(asked_at))


@task()
def send_new_device_notice(
    device_token_id: str, client_address: str, *, request_id: str = ""
) -> None:
    notify_new_device(device_token_id, client_address)


@task()
def send_invitation(invitation_id: str, *, request_id: str = "") -> None:
    notify_invitation(invitation_id)


@task()
def warn_of_key(api_key_id: str, administrator_id: str) -> None:
    send_expiry_warning(api_key_id, administrator_id)
