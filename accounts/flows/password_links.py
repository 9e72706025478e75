"""A new password by a link: it is requested for an address, sent, and sets the password.

In between, the worker decides whether to send a link, and makes it. A link is signed, not stored.
It ends after ``PASSWORD_LINK_LIFETIME``, and as soon as anything that its signature covers changes:
the password (so it works once), the e-mail, a login, a deactivation. It belongs to one user, and to
the organisation that gave the user a role in the admin, if one did: setting the password then gives
the login to the admin. Otherwise it is for users who have that login.
"""

import re
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django_tasks import TaskContext, task

from accounts.addresses import canonical_email, validate_typed_email
from accounts.audit import record
from accounts.flows.users import locked
from accounts.messages.delivering import delivering
from accounts.messages.email import send_email
from accounts.messages.quotas import may_mail_user
from accounts.models import AuditReason, AuthEventKind, Organisation, Role, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin, network_of
from core.plain_text import name_for_mail

# Logs redact words with such a prefix.
_PREFIX = "mhl_"
_NONE = UUID(int=0)
_LINK = re.compile(r"mhl_([0-9a-f]{32})([0-9a-f]{32})([0-9a-z]{1,13})T([0-9a-f]{32})", re.ASCII)


class LinkSubject(NamedTuple):
    """Whose password a link sets, and the organisation that gave the user a role."""

    user: User
    organisation: Organisation | None


class _Tokens(PasswordResetTokenGenerator):
    key_salt = "moonhook.password-link"

    def __init__(self, organisation: Organisation | None) -> None:
        super().__init__()
        self._organisation = organisation

    def _make_hash_value(self, user: Any, timestamp: int) -> str:
        django_own = super()._make_hash_value(user, timestamp)
        states = [user.email, user.is_staff, user.is_superuser, user.is_active]
        states.append(user.sessions_valid_after)
        if self._organisation is not None:
            states += [self._organisation.pk, self._organisation.sessions_valid_after]
        return ":".join([django_own, *map(str, states)])


def make_link(user: User, organisation: Organisation | None = None) -> str:
    """The secret of a new link; rows must be as stored."""
    timestamp, signature = _Tokens(organisation).make_token(user).split("-")
    organisation_id = _NONE if organisation is None else organisation.pk
    return f"{_PREFIX}{user.pk.hex}{organisation_id.hex}{timestamp}T{signature}"


def address_of(link: str) -> str:
    """The URL of the page that the link opens.

    In the query, which Moonhook's log and that of the proxies leave out.
    """
    return f"{settings.PUBLIC_URL}{reverse('admin:password_link')}?link={link}"


def read_link(link: str) -> LinkSubject | None:
    """Whose link it is; ``None`` if it is not, or no longer, valid."""
    match = _LINK.fullmatch(link)
    if match is None:
        return None
    user_id, organisation_id = UUID(match[1]), UUID(match[2])
    user = User.objects.filter(pk=user_id).first()
    organisation = Organisation.objects.filter(pk=organisation_id).first()
    if user is None or (organisation is None and organisation_id != _NONE):
        return None
    if not may_set_password(user, organisation):
        return None
    token = f"{match[3]}-{match[4]}"
    return (
        LinkSubject(user, organisation) if _Tokens(organisation).check_token(user, token) else None
    )


def may_set_password(user: User, organisation: Organisation | None) -> bool:
    """Whether the user may get or use a link, for the organisation if there is one.

    Without one the user must have a login to the admin; with one the user must have accepted a role
    of it that opens something in the admin.
    """
    if not user.is_active:
        return False
    if organisation is None:
        return user.is_staff and not user.is_without_active_organisation()
    if user.is_superuser or not organisation.is_active:
        return False
    opening = [role for role in Role if role.scopes]
    return user.memberships.filter(role__in=opening, organisation=organisation).exists()


@task(takes_context=True)
def offer_password_reset(context: TaskContext, email: str, *, request_id: str = "") -> None:
    """Sends a link to the address if it is that of active staff.

    The first attempt counts the e-mail against its quota. Raises ``TryAgainError`` or
    ``DeliveryError``.
    """
    user = User.objects.find_active_by_email(email)
    if user is None or not may_set_password(user, None):
        return
    if context.attempt == 1 and not may_mail_user(user):
        return
    mail_password_link(str(user.pk), "", user.email, _enqueued_at(context))


@task(takes_context=True)
def send_password_link(
    context: TaskContext, user_id: str, organisation_id: str, email: str, *, request_id: str = ""
) -> None:
    mail_password_link(user_id, organisation_id, email, _enqueued_at(context))


def _enqueued_at(context: TaskContext) -> datetime:
    return context.task_result.enqueued_at or timezone.now()


def mail_password_link(user_id: str, organisation_id: str, email: str, asked_at: datetime) -> None:
    """Sends a new link to set the password, if the user may still use one.

    ``organisation_id`` names the organisation that made the user an administrator; it is empty
    after a forgotten password. ``email`` is the canonical address that was invited or entered:
    nothing is sent if somebody has changed the user's address since. The link is made here, so that
    no task contains one. Raises ``TryAgainError`` or ``DeliveryError``.
    """
    user = User.objects.filter(pk=user_id, email=email).first()
    organisation = None
    if organisation_id:
        organisation = Organisation.objects.filter(pk=organisation_id).first()
    if user is None or (organisation is None and organisation_id):
        return
    if not may_set_password(user, organisation):
        return
    name = "password_reset" if organisation is None else "administrator"
    context = {
        "user_name": name_for_mail(user.name),
        "organisation_name": name_for_mail(organisation.name) if organisation else "",
        "link": address_of(make_link(user, organisation)),
        "hours": int(settings.PASSWORD_LINK_LIFETIME.total_seconds() // 3600),
    }
    with delivering(
        f"Password link of user {user.pk}", give_up_at=asked_at + settings.PASSWORD_LINK_LIFETIME
    ):
        send_email(user.delivery_email, name, context)


def request_password_link(email: str, origin: Origin) -> None:
    """Queues a link for the address, whether it has an account or not.

    The worker looks the user up, so that known and unknown addresses take the same time here.
    Raises ``ValidationError`` for an invalid e-mail address, and ``RateLimitedError``.
    """
    validate_typed_email(email)
    address = canonical_email(email)
    network = network_of(origin.client_address)
    hit([windows.PASSWORD_LINKS_OF_CLIENT], "password-link", network)
    _request(address, origin)


def request_password_link_for(user: User, origin: Origin) -> None:
    """Queues a link to the user's address, for an administrator, who does not see it.

    Raises ``RateLimitedError``.
    """
    _request(user.email, origin)


def _request(address: str, origin: Origin) -> None:
    hit(windows.PASSWORD_LINKS_TO_ADDRESS, "password-link-to", address)
    offer_password_reset.enqueue(address, request_id=origin.request_id)


def set_password_by_link(link: str, password_hash: str, *, origin: Origin = NOWHERE) -> User:
    """Sets the password, which ends the user's logins to the admin and every link sent before.

    A link of an organisation that made the user its administrator also makes the user staff: only
    now, when the user acts and nobody else knows the password. Raises ``NotFoundError`` for a link
    that is not valid; of concurrent uses one succeeds.
    """
    subject = read_link(link)
    if subject is None:
        raise _not_valid()
    with transaction.atomic():
        locked(subject.user)
        subject = read_link(link)
        if subject is None:
            raise _not_valid()
        user, is_new_staff = subject.user, not subject.user.is_staff
        user.password, user.is_staff = password_hash, True
        user.save(update_fields=["password", "is_staff"])
    reason = AuditReason.PASSWORD_SET_BY_LINK
    record(AuthEventKind.PASSWORD_SET, origin, user=user, by=user, reason=reason)
    if is_new_staff:
        record(AuthEventKind.STAFF_GRANTED, origin, user=user, by=user, reason=reason)
    return user


def _not_valid() -> NotFoundError:
    return NotFoundError("This link is no longer valid.")
