from accounts.errors import ForbiddenError
from accounts.models import Organisation, User


def require_own_user(organisation: Organisation, user: User) -> None:
    """Raises ``ForbiddenError`` unless the user is a member of this organisation only.

    PIN codes go to the profile's phone and e-mail: whoever may change them owns the account, so
    no tenant may do so to a user whom it shares with another.
    """
    if not user.belongs_only_to(organisation):
        raise ForbiddenError("This user is not a member of this organisation only.")
