"""Locked logins are opened again."""

from accounts.admin_login_limits import forgive_everywhere
from accounts.audit import record_about, record_about_address
from accounts.flows.users import require_home
from accounts.models import AuditReason, AuthEventKind, Organisation, PinFailures, User
from core.http.origin import NOWHERE, Origin


def unlock_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Lets the user log in by PIN again. Raises ``ForbiddenError`` for one of another home."""
    require_home(organisation, user)
    PinFailures.objects.unlock(user.email)
    record_about(AuthEventKind.ACCOUNT_UNLOCKED, origin, user)
    return user


def unlock_address(email: str, *, origin: Origin, by: User) -> None:
    """Lets the address log in by PIN again, whether somebody has it or not.

    Asks nobody for leave: callers know who may.
    """
    PinFailures.objects.unlock(email)
    record_about_address(AuthEventKind.ACCOUNT_UNLOCKED, origin, email, by=by)


def reopen_admin_login(user: User, *, origin: Origin, by: User) -> None:
    """Forgets the wrong passwords that locked the user's admin login."""
    forgive_everywhere(user)
    record_about(
        AuthEventKind.ACCOUNT_UNLOCKED, origin, user, by=by, reason=AuditReason.ADMIN_LOGIN
    )
