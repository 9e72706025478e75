from accounts.audit import record
from accounts.models import AuthEventKind, PinFailures, User
from config.http.origin import Origin


def unlock_address(email: str, *, origin: Origin, by: User) -> None:
    """Lets the address log in by PIN again, whether somebody has it or not.

    Asks nobody for leave: callers know who may.
    """
    PinFailures.objects.unlock(email)
    user = User.objects.filter(email=email).first()
    record(
        AuthEventKind.ACCOUNT_UNLOCKED,
        origin,
        user=by,
        organisation=None if user is None else user.sole_organisation(),
        email=email,
    )
