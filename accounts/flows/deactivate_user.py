from django.db import transaction

from accounts.audit import record_about
from accounts.flows.change_profile import held
from accounts.flows.own_user import require_home
from accounts.models import AuthEventKind, Organisation, User
from core.http.origin import NOWHERE, Origin


def deactivate_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Logs the user out everywhere, at once. Raises ``ForbiddenError`` for one of another home."""
    with transaction.atomic():
        user = held(user)
        require_home(organisation, user)
        user.is_active = False
        user.save(update_fields=["is_active"])
    record_about(AuthEventKind.USER_DEACTIVATED, origin, user)
    return user
