from accounts.flows.own_user import require_own_user
from accounts.models import Organisation, User


def deactivate_user(organisation: Organisation, user: User) -> User:
    """Logs the user out everywhere, at once. Raises ``ForbiddenError`` for a shared user."""
    require_own_user(organisation, user)
    user.is_active = False
    user.save(update_fields=["is_active"])
    return user
