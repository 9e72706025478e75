"""Background work. Arguments are kept readable by the task queue: never a secret among them.

``request_id`` names the request that asked for it, in every event of the task.
"""

from django_tasks import task

from accounts.flows.notify_new_device import notify_new_device
from accounts.flows.send_pin import send_pin
from accounts.pin_delivery.channels import SendVia


@task()
def deliver_pin(email: str, send_via: str, *, request_id: str = "") -> None:
    send_pin(email, SendVia(send_via))


@task()
def send_new_device_notice(
    device_token_id: str, client_address: str, *, request_id: str = ""
) -> None:
    notify_new_device(device_token_id, client_address)
