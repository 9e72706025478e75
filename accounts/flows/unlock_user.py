from accounts.audit import record_about
from accounts.flows.own_user import require_home
from accounts.models import AuthEventKind, Organisation, PinFailures, User
from core.http.origin import NOWHERE, Origin


def unlock_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Lets the user log in by PIN again. Raises ``ForbiddenError`` for one of another home."""
    require_home(organisation, user)
    PinFailures.objects.unlock(user.email)
    record_about(AuthEventKind.ACCOUNT_UNLOCKED, origin, user)
    return user
