from accounts.admin_login_limits import forgive_everywhere
from accounts.audit import record_about
from accounts.models import AuthEventKind, User
from core.http.origin import Origin


def reopen_admin_login(user: User, *, origin: Origin, by: User) -> None:
    """Forgets the wrong passwords that locked the user's admin login."""
    forgive_everywhere(user)
    record_about(AuthEventKind.ACCOUNT_UNLOCKED, origin, user, by=by, reason="admin-login")
