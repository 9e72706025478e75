"""Unlocking PIN logins and admin logins."""

from accounts.admin_login_limits import forgive_everywhere
from accounts.audit import record, record_about_address
from accounts.flows.minting import PLATFORM, Maker
from accounts.flows.users import require_home
from accounts.models import AuditReason, AuthEventKind, Organisation, PinFailures, User
from core.http.origin import NOWHERE, Origin


def unlock_user(
    organisation: Organisation,
    user: User,
    *,
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> User:
    """Unlocks the user's PIN login.

    Raises ``ForbiddenError`` for a user of another home, or with more scopes than the maker.
    """
    require_home(organisation, user)
    maker.touches(user, organisation)
    PinFailures.objects.unlock(user.email)
    record(AuthEventKind.ACCOUNT_UNLOCKED, origin, user=user)
    return user


def unlock_address(email: str, *, origin: Origin, by: User) -> None:
    """Unlocks PIN logins of the address, whether it has an account or not.

    Callers check the permission.
    """
    PinFailures.objects.unlock(email)
    record_about_address(AuthEventKind.ACCOUNT_UNLOCKED, origin, email, by=by)


def reopen_admin_login(user: User, *, origin: Origin, by: User) -> None:
    """Forgets the wrong passwords that locked the user's admin login."""
    forgive_everywhere(user)
    record(AuthEventKind.ACCOUNT_UNLOCKED, origin, user=user, by=by, reason=AuditReason.ADMIN_LOGIN)
