"""Creating, changing and deactivating users."""

from collections.abc import Collection
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from accounts.addresses import canonical_email, canonical_phone
from accounts.audit import record
from accounts.flows.api_keys import revoke_api_keys
from accounts.flows.minting import PLATFORM, Maker
from accounts.flows.notices import send_change_notice
from accounts.flows.row_limit import check_row_limit
from accounts.flows.second_factor import remove_second_factor
from accounts.messages.quotas import count_mail_of, organisation_that_pays
from accounts.models import (
    ApiKey,
    AuditReason,
    AuthEventKind,
    Membership,
    Organisation,
    PinChallenge,
    Role,
    User,
)
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.errors import (
    AddressTakenError,
    ForbiddenError,
    LimitExceededError,
    NotFoundError,
    RateLimitedError,
)
from core.http.origin import NOWHERE, Origin

PROFILE_FIELDS = frozenset({"email", "name", "phone", "is_active"})
# Fields that a user logs in with, or that codes are sent to.
LOGIN_FIELDS = frozenset({"email", "phone"})
STAFF_FIELDS = frozenset({"is_staff", "is_superuser"})
CHANGED_BY_STAFF_ALONE = "This user has access to the admin, and alone changes these fields."
# Fields by which somebody else could get in, or keep the user out.
WAYS_IN = LOGIN_FIELDS | {"is_active"}


@transaction.atomic
def create_user(
    organisation: Organisation,
    *,
    email: str,
    name: str = "",
    phone: str = "",
    role: str = "",
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> User:
    """Creates a user as a member of the organisation.

    Raises ``ValidationError`` by field, ``BeyondMakerError`` for the role, ``AddressTakenError`` if
    the address belongs to a user outside the organisation, who can only be invited, or
    ``LimitExceededError``.
    """
    maker.changes_role(role or Role.MEMBER)
    # Other fields are checked first, so that their errors do not reveal whether the address exists.
    User(email=email, name=name, phone=phone).clean_fields(exclude=["password"])
    known = User.objects.find_by_email(email)
    if known is not None:
        if known.memberships.filter(organisation=organisation).exists():
            raise ValidationError(
                {"email": ValidationError("This user is already a member.", code="member")}
            )
        raise AddressTakenError("A user with this e-mail exists elsewhere. Use addMember.")
    members = Membership.objects.filter(organisation=organisation)
    check_row_limit(organisation.pk, members, settings.USERS_PER_ORGANISATION, "users")
    _count_creation(organisation)
    user = User.objects.create_user(email, name=name.strip(), phone=phone, home=organisation)
    Membership.objects.create(organisation=organisation, user=user, role=role or Role.MEMBER)
    record(AuthEventKind.USER_CREATED, origin, user=user, organisation=organisation)
    return user


def _count_creation(organisation: Organisation) -> None:
    """Counts one user of the day: those that are removed again stay users without a home."""
    most = settings.USERS_PER_ORGANISATION
    try:
        hit([windows.a_day(most)], "user-creation", str(organisation.pk))
    except RateLimitedError as error:
        raise LimitExceededError(
            f"An organisation creates at most {most:,} users a day."
        ) from error


def create_user_without_home(*, email: str, name: str, phone: str, origin: Origin) -> User:
    """Creates a user outside all organisations, whom only superusers manage."""
    user: User = User.objects.create_user(email, name=name, phone=phone)
    record(AuthEventKind.USER_CREATED, origin, user=user)
    return user


def record_new_superuser(user: User, *, origin: Origin) -> None:
    """Records a superuser that Django's command has created."""
    record(AuthEventKind.USER_CREATED, origin, user=user)
    record_superuser(user, origin=origin)


def record_superuser(user: User, *, origin: Origin) -> None:
    """Records the access and the password that a user was given without a form."""
    for kind in (AuthEventKind.SUPERUSER_GRANTED, AuthEventKind.STAFF_GRANTED):
        record(kind, origin, user=user, organisation=user.home)
    if user.has_usable_password():
        record(AuthEventKind.PASSWORD_SET, origin, user=user)


@transaction.atomic
def update_user(
    organisation: Organisation,
    user: User,
    *,
    role: str | None = None,
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
    **profile: object,
) -> User:
    """Changes the role, and the given fields of ``PROFILE_FIELDS``.

    Every organisation sets its own role. Only home may change name and ``is_active``, and e-mail
    and phone only while ``require_login_of`` passes (``ForbiddenError``). Raises
    ``ValidationError`` by field, ``NotFoundError`` for the role of a former member,
    ``BeyondMakerError`` for a role, and for fields of a user with more scopes, and
    ``RateLimitedError`` as ``change_profile`` does.
    """
    user = locked(user)
    if WAYS_IN & profile.keys():
        maker.touches(user, organisation)
    if role is not None:
        change_role(organisation, user, role, origin=origin, maker=maker)
    if profile:
        require = require_login_of if LOGIN_FIELDS & profile.keys() else require_home
        require(organisation, user)
        change_profile(user, **{field: profile[field] for field in PROFILE_FIELDS & profile.keys()})
        record(
            AuthEventKind.USER_CHANGED,
            origin,
            user=user,
            organisation=organisation,
            reason=", ".join(sorted(profile)),
        )
    return user


def change_role(
    organisation: Organisation,
    user: User,
    role: str,
    *,
    origin: Origin,
    maker: Maker = PLATFORM,
) -> Membership:
    """Changes and records the role of a member. Call with the user's row locked.

    Raises ``NotFoundError`` for a former member, and ``BeyondMakerError`` unless the maker has all
    scopes of the former and of the new role.
    """
    membership = Membership.objects.filter(organisation=organisation, user=user).first()
    if membership is None:
        raise NotFoundError("This user is no longer a member.")
    former, membership.role = membership.role, role
    maker.changes_role(former, role)
    membership.save(update_fields=["role"])
    if role != former:
        record(
            AuthEventKind.ROLE_CHANGED,
            origin,
            user=user,
            organisation=organisation,
            reason=f"{former} to {role}",
        )
    return membership


def change_any_user(user: User, *, by: User, origin: Origin, **changes: object) -> User:
    """Changes any user's profile and access, for a superuser, and records both.

    Call inside a transaction, with the row that ``locked`` returned. Raises
    ``ValidationError`` by field, ``ForbiddenError`` for e-mail and phone of a user with access to
    the admin, and ``RateLimitedError`` as ``change_profile`` does.
    """
    was_staff, was_superuser = user.is_staff, user.is_superuser
    if was_staff and LOGIN_FIELDS & changes.keys():
        raise ForbiddenError(CHANGED_BY_STAFF_ALONE)
    change_profile(user, **changes)
    if user.is_staff and not was_staff:
        _end_password_of_home(user, by=by, origin=origin)
    if was_staff and not user.is_staff:
        _end_staff_credentials(user, origin)
        remove_second_factor(user)
    if profile := sorted(PROFILE_FIELDS & changes.keys()):
        reason = ", ".join(profile)
        record(AuthEventKind.USER_CHANGED, origin, user=user, by=by, reason=reason)
    for before, now, granted, revoked in (
        (was_staff, user.is_staff, AuthEventKind.STAFF_GRANTED, AuthEventKind.STAFF_REVOKED),
        (
            was_superuser,
            user.is_superuser,
            AuthEventKind.SUPERUSER_GRANTED,
            AuthEventKind.SUPERUSER_REVOKED,
        ),
    ):
        if now != before:
            # Under home even for a superuser: home should learn that it lost or regained the user.
            kind = granted if now else revoked
            record(kind, origin, user=user, by=by, organisation=user.home, email=user.email)
    return user


@transaction.atomic
def change_own_login(user: User, *, email: str, phone: str, origin: Origin) -> User:
    """Changes the user's own e-mail and phone. Callers check the password and second factor.

    Raises ``ValidationError`` by field, and ``RateLimitedError`` as ``change_profile`` does.
    """
    user = locked(user)
    given = {"email": canonical_email(email), "phone": canonical_phone(phone)}
    changes = {field: value for field, value in given.items() if value != getattr(user, field)}
    if "email" in changes:
        changes["email"] = email
    change_profile(user, **changes)
    if changes:
        record(
            AuthEventKind.USER_CHANGED,
            origin,
            user=user,
            by=user,
            reason=", ".join(sorted(changes)),
        )
    return user


@transaction.atomic
def take_staff_access(
    organisations: Collection[UUID], user: User, *, by: User, origin: Origin
) -> User:
    """Takes the login to the admin away, with its password and second factor; the user is told.

    The user gets it back by an invitation, with a new password: their home may change the address
    meanwhile, and must not act with what the former administrator had. The second factor of a
    user whom home shares stays: the next link and password open the other organisation too.
    ``organisations`` are those that ``by`` administers. Raises ``ForbiddenError`` unless one is the
    user's home.
    """
    user = locked(user)
    if user.tenant_id not in organisations or not user.is_staff:
        raise ForbiddenError("This user's access to the admin is not yours to take away.")
    user.is_staff = False
    user.save(update_fields=["is_staff"])
    _end_staff_credentials(user, origin)
    if user.home is not None and user.belongs_only_to(user.home):
        remove_second_factor(user)
    record(AuthEventKind.STAFF_REVOKED, origin, user=user, by=by)
    return user


def _end_password_of_home(user: User, *, by: User, origin: Origin) -> None:
    """Ends the password of a user who becomes staff: it would open the admin to who has set it."""
    if user.has_usable_password():
        user.set_unusable_password()
        save_password(user, origin=origin, by=by)


def _end_staff_credentials(user: User, origin: Origin) -> None:
    """Ends also the keys that the user approved: a new login to the admin must not revive them."""
    user.set_unusable_password()
    user.save(update_fields=["password"])
    revoke_api_keys(ApiKey.objects.filter(approved_by=user), origin=origin)
    send_change_notice.enqueue(str(user.pk), user.delivery_email, ["staff"])


def deactivate_user(
    organisation: Organisation,
    user: User,
    *,
    origin: Origin = NOWHERE,
    maker: Maker = PLATFORM,
) -> User:
    """Logs the user out everywhere.

    Raises ``ForbiddenError`` for a user of another home, or with more scopes than the maker.
    """
    with transaction.atomic():
        user = locked(user)
        require_home(organisation, user)
        maker.touches(user, organisation)
        user.is_active = False
        user.save(update_fields=["is_active"])
    record(AuthEventKind.USER_DEACTIVATED, origin, user=user)
    return user


def change_profile(user: User, **changes: object) -> User:
    """Changes the given fields of ``PROFILE_FIELDS`` and ``STAFF_FIELDS``.

    A change of e-mail or phone is told to the former address, and to a new one. Callers check the
    permission. Call inside a transaction, with the locked row of ``locked``. Raises
    ``ValidationError`` by field, and ``RateLimitedError`` for a change that no mail may tell of.
    """
    before = {field: getattr(user, field) for field in LOGIN_FIELDS}
    former_address = user.delivery_email
    given = (PROFILE_FIELDS | STAFF_FIELDS) & changes.keys()
    for field in given:
        setattr(user, field, changes[field])
    # Before uniqueness, so that errors of other fields do not reveal whether the address exists.
    user.clean_fields(exclude=["password"])
    user.full_clean(exclude=["password"])
    addresses = {"delivery_email"} if "email" in given else set()
    user.save(update_fields=given | addresses)
    if changed := sorted(field for field in LOGIN_FIELDS if getattr(user, field) != before[field]):
        end_open_challenges(before["email"])
        hit([windows.LOGIN_CHANGES_OF_USER], "login-change", str(user.pk))
        count_mail_of(organisation_that_pays(user))
        send_change_notice.enqueue(str(user.pk), former_address, changed)
        if "email" in changed:
            send_change_notice.enqueue(
                str(user.pk), user.delivery_email, changed, is_new_address=True
            )
    return user


def locked(user: User) -> User:
    """The user's current row, locked until the transaction ends.

    Memberships change under the same lock, so checks of them stay true meanwhile.
    """
    return User.objects.select_for_update().get(pk=user.pk)


def end_open_challenges(email: str) -> None:
    """Cancels codes that were sent to a former address or number."""
    PinChallenge.objects.open_of(email).update(ended_at=timezone.now())


def require_home(organisation: Organisation, user: User) -> None:
    """Raises ``ForbiddenError`` unless the organisation is the user's home."""
    if not user.belongs_to(organisation):
        raise ForbiddenError("This user does not belong to this organisation.")


def require_login_of(organisation: Organisation, user: User) -> None:
    """Raises ``ForbiddenError`` unless the organisation may change e-mail and phone of the user.

    Call with the user's row locked, so that the user does not join another organisation or get
    access to the admin meanwhile.
    """
    require_home(organisation, user)
    if user.has_login_changed_by(organisation):
        return
    if user.belongs_only_to(organisation):
        raise ForbiddenError(CHANGED_BY_STAFF_ALONE)
    raise ForbiddenError("This user is also a member of another organisation.")


def save_password(user: User, *, origin: Origin, by: User | None = None) -> None:
    """Saves the user's new hash, and nothing else of the user.

    ``by`` is the administrator who set it, if it was not the user.
    """
    user.save(update_fields=["password"])
    record_password(user, origin=origin, by=by)


def record_password(user: User, *, origin: Origin, by: User | None = None) -> None:
    """Records a password that was set or, if it is unusable now, removed."""
    reason = "" if user.has_usable_password() else AuditReason.PASSWORD_REMOVED
    record(AuthEventKind.PASSWORD_SET, origin, user=user, by=by, reason=reason)
