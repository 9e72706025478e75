"""Notices in the background: a new device, a changed address, an invitation, an expiring key."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_tasks import task

from accounts.alerts import AccountAlert, alert
from accounts.messages.delivering import delivering
from accounts.messages.email import send_email
from accounts.messages.quotas import count_mail_of
from accounts.models import ApiKey, DeviceToken, Invitation, Role, User
from accounts.rate_limits import windows
from accounts.rate_limits.counters import Window
from accounts.rate_limits.limiter import hit
from accounts.scopes import names_of
from core.errors import RateLimitedError
from core.plain_text import name_for_mail

NOTICE_DAYS = (30, 7, 1)


def administrators_of(organisation_id: UUID) -> QuerySet[User]:
    return User.objects.filter(
        is_active=True,
        memberships__organisation=organisation_id,
        memberships__role=Role.ADMINISTRATOR,
    )


def may_mail(administrator: User, organisation_id: UUID, limit: Window, action: str) -> bool:
    """Counts one mail, and returns whether it fits the limits: mailboxes must not be flooded."""
    try:
        hit([limit], action, administrator.email)
        count_mail_of(organisation_id)
    except RateLimitedError:
        return False
    return True


@task()
def send_new_device_notice(
    device_token_id: str, client_address: str, *, request_id: str = ""
) -> None:
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
    }
    with delivering(f"Notice of device {device_token.pk}"):
        send_email(device_token.user.delivery_email, "new_device", context)


@task()
def send_program_login_notice(
    api_key_id: str, client_id: str, client_address: str, *, request_id: str = ""
) -> None:
    """Notifies the person who approved a program's login that the program has its key.

    ``client_id`` is what the program calls itself. Raises ``TryAgainError`` or ``DeliveryError``.
    """
    rows = ApiKey.objects.select_related("organisation", "approved_by")
    api_key = rows.filter(pk=api_key_id).first()
    if api_key is None or api_key.approved_by is None:
        return
    context = {
        "user_name": name_for_mail(api_key.approved_by.name),
        "api_key": api_key,
        "program": name_for_mail(client_id),
        "key_name": name_for_mail(api_key.name),
        "organisation_name": name_for_mail(api_key.organisation.name),
        "scopes": names_of(api_key.held_scopes),
        "client_address": client_address or "unknown",
    }
    with delivering(f"Notice of key {api_key.key} for its approver"):
        send_email(api_key.approved_by.delivery_email, "program_login", context)


@task()
def send_change_notice(
    user_id: str, address: str, changes: list[str], *, is_new_address: bool = False
) -> None:
    """Notifies the user of changed ``email``, ``phone`` or ``staff``.

    ``address`` is the one from before the change, or the new one of ``is_new_address``.

    Raises ``TryAgainError`` or ``DeliveryError``.
    """
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return
    context = {
        "user_name": name_for_mail(user.name),
        "changes": changes,
        "is_new_address": is_new_address,
    }
    with delivering(f"Notice of a change of user {user.pk}"):
        send_email(address, "account_changed", context)


@task()
def send_invitation(invitation_id: str, *, request_id: str = "") -> None:
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
    }
    with delivering(f"Mail of invitation {invitation.pk}", give_up_at=invitation.expires_at):
        send_email(invitation.user.delivery_email, "invitation", context)


@task()
def warn_of_key(api_key_id: str, administrator_id: str) -> None:
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
    }
    with delivering(
        f"Warning of key {api_key.key} for user {administrator.pk}", give_up_at=api_key.expires_at
    ):
        send_email(administrator.delivery_email, "key_expires", context)


def _expires_later(api_key: ApiKey) -> bool:
    return api_key.expires_at is not None and api_key.expires_at > timezone.now()


def warn_of_expiry() -> int:
    """Queues each due notice once, 30, 7 and 1 days before expiry; returns the number of keys.

    A missed notice is not sent late: the latest one that is due replaces the earlier ones.
    """
    return sum(_warn_if_due(api_key) for api_key in _expiring_keys())


def _expiring_keys() -> list[ApiKey]:
    expiring = ApiKey.objects.expiring_within(timedelta(days=max(NOTICE_DAYS)))
    return list(expiring.select_related("organisation").filter(organisation__is_active=True))


@transaction.atomic
def _warn_if_due(api_key: ApiKey) -> bool:
    if api_key.expires_at is None:
        return False
    remaining = api_key.expires_at - timezone.now()
    due = min(days for days in NOTICE_DAYS if remaining <= timedelta(days=days))
    # Claimed in the transaction that queues the e-mails: one process sends them, and none is lost.
    claimed = ApiKey.objects.filter(
        Q(expiry_notice_days__isnull=True) | Q(expiry_notice_days__gt=due), pk=api_key.pk
    ).update(expiry_notice_days=due)
    if claimed:
        organisation_id, limit = api_key.organisation_id, windows.KEY_WARNINGS_TO_ADDRESS
        for administrator in administrators_of(organisation_id):
            if may_mail(administrator, organisation_id, limit, "key-warning-to"):
                warn_of_key.enqueue(str(api_key.pk), str(administrator.pk))
        alert(AccountAlert.API_KEY_EXPIRING, api_key, expiresAt=api_key.expires_at, days=due)
    return bool(claimed)
