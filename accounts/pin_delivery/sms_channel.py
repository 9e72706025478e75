import json
import os
from urllib.parse import quote

from apprise import Apprise
from django.conf import settings
from django.template.loader import render_to_string
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.deliveries import RefusedError
from accounts.models import User
from accounts.pin_delivery.gateway_answer import listening


def send_pin_sms(user: User, pin: str, minutes: int) -> None:
    """Sends through the gateway of ``SMS_URL``, or into the outbox where there is none."""
    if not user.phone:
        raise RefusedError("the profile has no phone any more", is_passing=False)
    text = render_to_string("messages/pin_sms.txt", {"pin": pin, "minutes": minutes}).strip()
    if settings.SMS_URL is None:
        write_to_outbox(user.phone, text)
    else:
        send_through_gateway(settings.SMS_URL, user.phone, text)


def send_through_gateway(url: str, phone: str, text: str) -> None:
    """``url`` is in Apprise's notation, with ``{phone}`` for the number.

    Raises ``RefusedError`` when the gateway does not take the message.
    """
    gateway = Apprise()
    if not gateway.add(url.replace("{phone}", quote(phone, safe=""))):
        raise RefusedError("SMS_URL is not an address that Apprise knows", is_passing=False)
    with listening() as answer:
        is_taken = gateway.notify(body=text)
    if not is_taken:
        reason = "no answer" if answer.status is None else f"status {answer.status}"
        raise RefusedError(f"the gateway gave {reason}", is_passing=answer.is_passing)


def write_to_outbox(phone: str, text: str) -> None:
    """One JSON file a message, named so that they sort by time; readable by its owner only."""
    settings.OUTBOX_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = settings.OUTBOX_DIR / f"{timezone.now():%Y%m%d-%H%M%S}-{uuid7()}.sms.json"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"to": phone, "text": text}, file, indent=2)
