from accounts.audit import record
from accounts.flows.own_user import require_own_user
from accounts.models import AuthEventKind, Organisation, PinFailures, User
from config.http.origin import NOWHERE, Origin


def unlock_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Lets the user log in by PIN again. Raises ``ForbiddenError`` for a shared user."""
    require_own_user(organisation, user)
    PinFailures.objects.unlock(user.email)
    record(AuthEventKind.ACCOUNT_UNLOCKED, origin, user=user, organisation=organisation)
    return user
