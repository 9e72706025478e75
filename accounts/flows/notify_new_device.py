from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from accounts.messages.delivering import delivering
from accounts.models import DeviceToken
from core.plain_text import name_for_mail


def notify_new_device(device_token_id: str, client_address: str) -> None:
    """Tells the user by e-mail of a device that logged in for the first time.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    device_token = DeviceToken.objects.select_related("user").filter(pk=device_token_id).first()
    if device_token is None:
        return
    context = {
        "user_name": name_for_mail(device_token.user.name),
        "device_token": device_token,
        "client_address": client_address or "unknown",
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(f"Notice of device {device_token.pk}"):
        send_mail(
            subject=render_to_string("messages/new_device_subject.txt", context).strip(),
            message=render_to_string("messages/new_device.txt", context),
            from_email=None,
            recipient_list=[device_token.user.delivery_email],
        )
