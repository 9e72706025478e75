from accounts.audit import record
from accounts.flows.own_user import require_own_user
from accounts.models import AuthEventKind, Organisation, User
from config.http.origin import NOWHERE, Origin


def deactivate_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Logs the user out everywhere, at once. Raises ``ForbiddenError`` for a shared user."""
    require_own_user(organisation, user)
    user.is_active = False
    user.save(update_fields=["is_active"])
    record(AuthEventKind.USER_DEACTIVATED, origin, user=user, organisation=organisation)
    return user
