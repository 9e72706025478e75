"""Links that set a password are made and sent by the worker."""

from datetime import datetime

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string

from accounts.audit import record_about
from accounts.messages.delivering import delivering
from accounts.messages.quotas import may_send_mail, organisation_that_pays
from accounts.models import AuditReason, AuthEventKind, Organisation, User
from accounts.password_links import address_of, make_link, may_set_password
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import is_first
from core.http.origin import NOWHERE
from core.plain_text import name_for_mail


def choose_user_to_reset(address: str) -> User | None:
    """The user to send a link to: active staff, within the quota of e-mails, which is counted."""
    user = User.objects.find_active_by_email(address)
    if user is None or not may_set_password(user, None):
        return None
    if may_send_mail(organisation_that_pays(user)):
        return user
    if is_first(windows.MESSAGES_REFUSED_ON_RECORD, "mail-of-organisation", str(user.pk)):
        record_about(AuthEventKind.RATE_LIMITED, NOWHERE, user, reason=AuditReason.MAIL_LIMIT)
    return None


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
        "public_url": settings.PUBLIC_URL,
    }
    with delivering(
        f"Password link of user {user.pk}", give_up_at=asked_at + settings.PASSWORD_LINK_LIFETIME
    ):
        send_mail(
            subject=render_to_string(f"messages/{name}_subject.txt", context).strip(),
            message=render_to_string(f"messages/{name}.txt", context),
            from_email=None,
            recipient_list=[user.delivery_email],
        )
