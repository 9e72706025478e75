"""E-mails sent by the worker: a new device, a changed address, an invitation, an expiring key."""

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import timezone

from accounts.messages.delivering import delivering
from accounts.models import ApiKey, DeviceToken, Invitation, User
from core.plain_text import name_for_mail


def notify_new_device(device_token_id: str, client_address: str) -> None:
    """Notifies the user of a device that logged in for the first time.

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


def notify_change(user_id: str, address: str, changes: list[str]) -> None:
    """Notifies the user, at their former address, of changed ``email``, ``phone`` or ``staff``.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return
    context = {
        "user_name": name_for_mail(user.name),
        "changes": changes,
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(f"Notice of a change of user {user.pk}"):
        send_mail(
            subject=render_to_string("messages/account_changed_subject.txt", context).strip(),
            message=render_to_string("messages/account_changed.txt", context),
            from_email=None,
            recipient_list=[address],
        )


def notify_invitation(invitation_id: str) -> None:
    """Notifies the user of an invitation, if it can still be answered.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    open_ones = Invitation.objects.answerable().select_related("user", "organisation")
    invitation = open_ones.filter(pk=invitation_id, user__is_active=True).first()
    if invitation is None:
        return
    context = {
        "user_name": name_for_mail(invitation.user.name),
        "organisation_name": name_for_mail(invitation.organisation.name),
        "invitation": invitation,
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(f"Mail of invitation {invitation.pk}", give_up_at=invitation.expires_at):
        send_mail(
            subject=render_to_string("messages/invitation_subject.txt", context).strip(),
            message=render_to_string("messages/invitation.txt", context),
            from_email=None,
            recipient_list=[invitation.user.delivery_email],
        )


def send_expiry_warning(api_key_id: str, administrator_id: str) -> None:
    """Warns one administrator of a key that expires soon, if it is still valid.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    api_key = ApiKey.objects.filter(pk=api_key_id, revoked_at__isnull=True).first()
    administrator = User.objects.filter(pk=administrator_id, is_active=True).first()
    if api_key is None or administrator is None or not _expires_later(api_key):
        return
    context = {
        "api_key": api_key,
        "key_name": name_for_mail(api_key.name),
        "organisation_name": name_for_mail(api_key.organisation.name),
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(
        f"Warning of key {api_key.key} for user {administrator.pk}", give_up_at=api_key.expires_at
    ):
        send_mail(
            subject=render_to_string("messages/key_expires_subject.txt", context).strip(),
            message=render_to_string("messages/key_expires.txt", context),
            from_email=None,
            recipient_list=[administrator.delivery_email],
        )


def _expires_later(api_key: ApiKey) -> bool:
    return api_key.expires_at is not None and api_key.expires_at > timezone.now()
