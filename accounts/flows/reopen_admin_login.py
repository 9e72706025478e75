from axes.models import AccessFailureLog

from accounts.audit import record_about_address
from accounts.models import AuthEventKind, User
from config.http.origin import Origin


def reopen_admin_login(email: str, *, origin: Origin, by: User) -> None:
    """Forgets the wrong passwords that locked the admin login of the address."""
    AccessFailureLog.objects.filter(username=email).delete()
    record_about_address(AuthEventKind.ACCOUNT_UNLOCKED, origin, email, "admin-login", by=by)
