"""Background tasks. The queue stores arguments readably, so they must not contain secrets.

A task is retried after ``TryAgainError``, after an outage of the database and after its worker was
killed, so each must tolerate running twice: the same message is then sent twice. ``request_id``
names the request that queued the task in every log event of it.
"""

from datetime import datetime

from django.db import transaction
from django.utils import timezone
from django_tasks import TaskContext, task

from accounts.flows.notices import (
    notify_change,
    notify_invitation,
    notify_new_device,
    send_expiry_warning,
)
from accounts.flows.send_password_link import choose_user_to_reset, mail_password_link
from accounts.flows.send_pin import choose_pin_channels, send_pin
from accounts.messages.channels import Channel, SendVia
from core.database.ids import parse_uuid


@task(takes_context=True)
def deliver_pin(
    context: TaskContext, email: str, send_via: str, *, device: str = "", request_id: str = ""
) -> None:
    """Queues one delivery per channel, so that each is retried by itself."""
    asked_at = context.task_result.enqueued_at or timezone.now()
    channels = choose_pin_channels(email, SendVia(send_via), asked_at)
    with transaction.atomic():
        for channel in channels:
            deliver_pin_over.enqueue(
                email, channel, asked_at.isoformat(), device=device, request_id=request_id
            )


@task()
def deliver_pin_over(
    email: str, channel: str, asked_at: str, *, device: str = "", request_id: str = ""
) -> None:
    send_pin(email, Channel(channel), datetime.fromisoformat(asked_at), parse_uuid(device))


@task()
def send_new_device_notice(
    device_token_id: str, client_address: str, *, request_id: str = ""
) -> None:
    notify_new_device(device_token_id, client_address)


@task()
def send_invitation(invitation_id: str, *, request_id: str = "") -> None:
    notify_invitation(invitation_id)


@task()
def send_change_notice(user_id: str, address: str, changes: list[str]) -> None:
    notify_change(user_id, address, changes)


@task()
def offer_password_reset(email: str, *, request_id: str = "") -> None:
    """Queues the mail by itself, so that a retry of it does not count it again."""
    user = choose_user_to_reset(email)
    if user is not None:
        send_password_link.enqueue(str(user.pk), "", user.email, request_id=request_id)


@task(takes_context=True)
def send_password_link(
    context: TaskContext, user_id: str, organisation_id: str, email: str, *, request_id: str = ""
) -> None:
    asked_at = context.task_result.enqueued_at or timezone.now()
    mail_password_link(user_id, organisation_id, email, asked_at)


@task()
def warn_of_key(api_key_id: str, administrator_id: str) -> None:
    send_expiry_warning(api_key_id, administrator_id)
