from django.utils import timezone

from accounts.models import PinChallenge, User

PROFILE_FIELDS = frozenset({"email", "name", "phone", "is_active"})
# What a user logs in with, or where codes go.
LOGIN_FIELDS = frozenset({"email", "phone"})
STAFF_FIELDS = frozenset({"is_staff", "is_superuser"})


def change_profile(user: User, **changes: object) -> User:
    """Changes the given ones of ``PROFILE_FIELDS`` and ``STAFF_FIELDS``.

    Asks nobody for leave: callers know who may. Call inside a transaction that holds the user's
    row (``held``), with the user as it stands there. Saves only what is given. Raises
    ``ValidationError`` by field.
    """
    before = (user.email, user.phone)
    given = (PROFILE_FIELDS | STAFF_FIELDS) & changes.keys()
    for field in given:
        setattr(user, field, changes[field])
    # First: what is wrong beside the address must not tell of it.
    user.clean_fields(exclude=["password"])
    user.full_clean(exclude=["password"])
    addresses = {"delivery_email"} if "email" in given else set()
    user.save(update_fields=given | addresses)
    if (user.email, user.phone) != before:
        end_open_challenge(before[0])
    return user


def held(user: User) -> User:
    """The user as the database has it, held until the transaction ends.

    Memberships begin and end under it too, so what was asked about them stays true meanwhile.
    """
    return User.objects.select_for_update().get(pk=user.pk)


def end_open_challenge(email: str) -> None:
    """Codes that went to an address or number which is the user's no longer are worth nothing."""
    PinChallenge.objects.filter(email=email, ended_at__isnull=True).update(ended_at=timezone.now())
