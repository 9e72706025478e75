"""Users are made, changed and deactivated."""

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.audit import record, record_about
from accounts.models import AuthEventKind, Membership, Organisation, PinChallenge, Role, User
from core.errors import AddressTakenError, ForbiddenError, NotFoundError
from core.http.origin import NOWHERE, Origin


@transaction.atomic
def create_user(
    organisation: Organisation,
    *,
    email: str,
    name: str = "",
    phone: str = "",
    role: str = "",
    origin: Origin = NOWHERE,
) -> User:
    """A new user, member of the organisation.

    Raises ``ValidationError`` by field, and ``AddressTakenError`` when the address belongs to a
    user who is not this organisation's: a tenant may add that user, not define them.
    """
    # First: what is wrong beside the address must not tell of it, and nothing be made by asking.
    User(email=email, name=name, phone=phone).clean_fields(exclude=["password"])
    known = User.objects.find_by_email(email)
    if known is not None:
        if known.memberships.filter(organisation=organisation).exists():
            raise ValidationError(
                {"email": ValidationError("This user is a member already.", code="member")}
            )
        raise AddressTakenError("A user with this e-mail exists elsewhere. Use addMember.")
    user = User.objects.create_user(email, name=name.strip(), phone=phone, home=organisation)
    Membership.objects.create(organisation=organisation, user=user, role=role or Role.MEMBER)
    record(AuthEventKind.USER_CREATED, origin, user=user, organisation=organisation)
    return user


@transaction.atomic
def update_user(
    organisation: Organisation,
    user: User,
    *,
    role: str | None = None,
    origin: Origin = NOWHERE,
    **profile: object,
) -> User:
    """Changes the given ones of ``email``, ``name``, ``phone``, ``is_active`` and the role.

    The role is the organisation's own matter. Only home may change the name and the activity, and
    e-mail and phone only while no other organisation has the user as a member
    (``ForbiddenError``). Raises ``ValidationError`` by field, and ``NotFoundError`` when the role
    is that of a user who is a member no more.
    """
    user = held(user)
    if role is not None:
        _change_role(organisation, user, role)
    if profile:
        require = require_sole_home if LOGIN_FIELDS & profile.keys() else require_home
        require(organisation, user)
        change_profile(user, **{field: profile[field] for field in PROFILE_FIELDS & profile.keys()})
    changed = ", ".join(sorted({*profile, *(["role"] if role is not None else [])}))
    if changed:
        record(
            AuthEventKind.USER_CHANGED,
            origin,
            user=user,
            organisation=organisation,
            reason=changed,
        )
    return user


def _change_role(organisation: Organisation, user: User, role: str) -> None:
    memberships = Membership.objects.filter(organisation=organisation, user=user)
    if not memberships.update(role=role):
        raise NotFoundError("This user is a member no more.")


def deactivate_user(organisation: Organisation, user: User, *, origin: Origin = NOWHERE) -> User:
    """Logs the user out everywhere, at once. Raises ``ForbiddenError`` for one of another home."""
    with transaction.atomic():
        user = held(user)
        require_home(organisation, user)
        user.is_active = False
        user.save(update_fields=["is_active"])
    record_about(AuthEventKind.USER_DEACTIVATED, origin, user)
    return user


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
