"""Setting the password for the admin by a link from an e-mail."""

from django.db import transaction

from accounts.audit import record_about
from accounts.flows.users import locked
from accounts.models import AuditReason, AuthEventKind, User
from accounts.password_links import read_link
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin


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
    record_about(AuthEventKind.PASSWORD_SET, origin, user, by=user, reason=reason)
    if is_new_staff:
        record_about(AuthEventKind.STAFF_GRANTED, origin, user, by=user, reason=reason)
    return user


def _not_valid() -> NotFoundError:
    return NotFoundError("This link is no longer valid.")
