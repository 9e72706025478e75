"""A PIN is requested: the request is limited and queued; the worker makes and sends the code."""

import uuid

from accounts.audit import record
from accounts.email_address import canonical_email, validate_typed_email
from accounts.messages.channels import SendVia
from accounts.models import AuthEventKind, DeviceToken
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.tasks import deliver_pin
from core.http.client_address import network_of
from core.http.origin import Origin


def request_pin(
    email: str, send_via: SendVia, origin: Origin, *, device: uuid.UUID | None = None
) -> None:
    """Queues a code for the address, whether it has an account or not.

    A device that names itself gets a code that it alone can use. The worker looks the user up, so
    that known and unknown addresses take the same time here. Raises ``ValidationError`` for an
    invalid e-mail address, and ``RateLimitedError``.
    """
    validate_typed_email(email)
    address = canonical_email(email)
    hit([windows.PIN_SENDS_OF_CLIENT], "pin-send", network_of(origin.client_address))
    count_send_to(address, device)
    deliver_pin.enqueue(
        address,
        send_via,
        device="" if device is None else str(device),
        request_id=origin.request_id,
    )
    record(AuthEventKind.PIN_REQUESTED, origin, email=address)


def count_send_to(address: str, device: uuid.UUID | None = None) -> None:
    """Counts one code sent to the canonical address. Raises ``RateLimitedError``.

    A device on which the user is logged in has windows of its own: strangers cannot use up its
    codes.
    """
    if device is not None and DeviceToken.objects.is_known(address, device):
        hit(windows.PIN_SENDS_OF_ADDRESS, "pin-send-to-device", address, str(device))
    else:
        hit(windows.PIN_SENDS_OF_ADDRESS, "pin-send-to", address)
