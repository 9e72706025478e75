from accounts.audit import record
from accounts.models import AuthEventKind, Membership, Organisation, User
from config.http.origin import NOWHERE, Origin


def remove_member(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> bool:
    """Ends the membership; the user, their devices and other memberships stay."""
    deleted, _ = Membership.objects.filter(organisation=organisation, user=user).delete()
    if deleted:
        record(AuthEventKind.MEMBER_REMOVED, origin, user=user, organisation=organisation)
    return deleted == 1
