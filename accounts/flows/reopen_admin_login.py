from axes.models import AccessFailureLog

from accounts.audit import record
from accounts.models import AuthEventKind, User
from config.http.origin import Origin


def reopen_admin_login(email: str, *, origin: Origin, by: User) -> None:
    """Forgets the wrong passwords that closed the admin's door for the address."""
    AccessFailureLog.objects.filter(username=email).delete()
    user = User.objects.filter(email=email).first()
    record(
        AuthEventKind.ACCOUNT_UNLOCKED,
        origin,
        user=by,
        organisation=None if user is None else user.sole_organisation(),
        email=email,
        reason="admin-login",
    )
