from django.utils import timezone

from accounts.models import PinChallenge, User

PROFILE_FIELDS = frozenset({"email", "name", "phone", "is_active"})
STAFF_FIELDS = frozenset({"is_staff", "is_superuser"})


def change_profile(user: User, **changes: object) -> User:
    """Changes the given ones of ``PROFILE_FIELDS`` and ``STAFF_FIELDS``.

    Asks nobody for leave: callers know who may. Call inside a transaction, with the user as the
    database has it. Raises ``ValidationError`` by field.
    """
    before = (user.email, user.phone)
    for field in (PROFILE_FIELDS | STAFF_FIELDS) & changes.keys():
        setattr(user, field, changes[field])
    user.full_clean(exclude=["password"])
    user.save()
    if (user.email, user.phone) != before:
        end_open_challenge(before[0])
    return user


def end_open_challenge(email: str) -> None:
    """Codes that went to an address or number which is the user's no longer are worth nothing."""
    PinChallenge.objects.filter(email=email, ended_at__isnull=True).update(ended_at=timezone.now())
