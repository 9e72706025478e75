from accounts.models import Organisation, User
from core.errors import ForbiddenError


def require_home(organisation: Organisation, user: User) -> None:
    """Raises ``ForbiddenError`` unless the organisation is the user's home."""
    if not user.belongs_to(organisation):
        raise ForbiddenError("This user does not belong to this organisation.")


def require_sole_home(organisation: Organisation, user: User) -> None:
    """Raises ``ForbiddenError`` unless it is, and the user is a member of no other organisation.

    Call with the user's row held, so that no invitation is accepted meanwhile.
    """
    require_home(organisation, user)
    if not user.belongs_only_to(organisation):
        raise ForbiddenError("This user is a member of another organisation too.")
