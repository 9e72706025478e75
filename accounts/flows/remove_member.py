from accounts.models import Membership, Organisation, User


def remove_member(organisation: Organisation, user: User) -> bool:
    """Ends the membership; the user, their devices and other memberships stay."""
    deleted, _ = Membership.objects.filter(organisation=organisation, user=user).delete()
    return deleted == 1
