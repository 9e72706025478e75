from accounts.audit import record
from accounts.errors import NotFoundError
from accounts.models import AuthEventKind, Membership, Organisation, Role, User
from config.http.origin import NOWHERE, Origin


def add_member(
    organisation: Organisation, *, email: str, role: str = "", origin: Origin = NOWHERE
) -> User:
    """Makes an existing user a member; one who is a member already gets the role.

    Raises ``NotFoundError`` for an address that nobody has, or a superuser: they are no tenant's.
    """
    user = User.objects.find_by_email(email)
    if user is None or user.is_superuser:
        raise NotFoundError("There is no user with this e-mail. Use createUser.")
    Membership.objects.update_or_create(
        organisation=organisation, user=user, defaults={"role": role or Role.MEMBER}
    )
    record(
        AuthEventKind.MEMBER_ADDED,
        origin,
        user=user,
        organisation=organisation,
        reason=role or Role.MEMBER.value,
    )
    return user
