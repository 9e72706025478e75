from django.db import transaction
from django.utils import timezone

from accounts.flows.own_user import require_own_user
from accounts.models import Membership, Organisation, PinChallenge, User

PROFILE_FIELDS = frozenset({"email", "name", "phone", "is_active"})


@transaction.atomic
def update_user(
    organisation: Organisation, user: User, *, role: str | None = None, **profile: object
) -> User:
    """Changes the given ones of ``email``, ``name``, ``phone``, ``is_active`` and the role.

    The role is the organisation's own matter; a profile may be changed only of a user who is a
    member of no other organisation (``ForbiddenError``). Raises ``ValidationError`` by field.
    """
    if role is not None:
        Membership.objects.filter(organisation=organisation, user=user).update(role=role)
    if profile:
        require_own_user(organisation, user)
        before = (user.email, user.phone)
        for field in PROFILE_FIELDS & profile.keys():
            setattr(user, field, profile[field])
        user.full_clean(exclude=["password"])
        user.save()
        if (user.email, user.phone) != before:
            end_open_challenge(before[0])
    return user


def end_open_challenge(email: str) -> None:
    """Codes that went to an address or number which is the user's no longer are worth nothing."""
    PinChallenge.objects.filter(email=email, ended_at__isnull=True).update(ended_at=timezone.now())
