from accounts.audit import record_about_address
from accounts.models import AuthEventKind, PinFailures, User
from core.http.origin import Origin


def unlock_address(email: str, *, origin: Origin, by: User) -> None:
    """Lets the address log in by PIN again, whether somebody has it or not.

    Asks nobody for leave: callers know who may.
    """
    PinFailures.objects.unlock(email)
    record_about_address(AuthEventKind.ACCOUNT_UNLOCKED, origin, email, by=by)
