"""Sessions: the rows behind the tokens that POST /session issues."""

from datetime import datetime, timedelta
from functools import lru_cache

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from django.utils.functional import cached_property
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.models import ApiKey, DeviceToken, Membership, Organisation, User
from accounts.models.api_key import approver_role, has_approver
from core.database.compiled_query import CompiledQuery, Parameter, parameters


class Credential(models.TextChoices):
    """The kind of credential that opened a session; the values are part of the REST interface."""

    API_KEY = "ApiKey", "API key"
    TOKEN = "Token", "Device token"


def _made_after_the_last_deactivation(owner: str) -> Q:
    since = f"{owner}__sessions_valid_after"
    return Q(**{f"{since}__isnull": True}) | Q(created_at__gt=F(since))


def _has_a_living_organisation() -> Q:
    """Refuses a user whose organisations are all inactive; users without one are unaffected."""
    memberships = Membership.objects.filter(user=OuterRef("device_token__user"))
    living = memberships.filter(
        Q(organisation__sessions_valid_after__isnull=True)
        | Q(organisation__sessions_valid_after__lt=OuterRef("created_at")),
        organisation__is_active=True,
    )
    return Q(Exists(living)) | ~Q(Exists(memberships))


class SessionQuerySet(models.QuerySet["Session"]):
    def live(self, now: datetime | Parameter | None = None) -> "SessionQuerySet":
        """Sessions that are valid now: neither expired nor ended with their credential or owner."""
        now = now or timezone.now()
        by_api_key = (
            Q(api_key__isnull=False, api_key__revoked_at__isnull=True)
            & (Q(api_key__expires_at__isnull=True) | Q(api_key__expires_at__gt=now))
            & Q(api_key__organisation__is_active=True)
            & _made_after_the_last_deactivation("api_key__organisation")
            & has_approver("api_key__")
        )
        by_device = (
            Q(
                device_token__isnull=False,
                device_token__revoked_at__isnull=True,
                device_token__user__is_active=True,
            )
            & _made_after_the_last_deactivation("device_token__user")
            & _has_a_living_organisation()
        )
        return self.filter(by_api_key | by_device, expires_at__gt=now)

    def with_owners(self) -> "SessionQuerySet":
        return self.select_related(
            "api_key__organisation", "api_key__approved_by", "device_token__user"
        )

    @staticmethod
    def find_live(token: str) -> "Session | None":
        """The live session with this bearer token; a malformed token causes no query."""
        if not credentials.is_well_formed(token, credentials.SecretKind.SESSION):
            return None
        digests = credentials.digests(token)
        found = _live_by_digest(len(digests)).all(digests=digests, now=timezone.now())
        if not found:
            return None
        session: Session = found[0]
        if session.api_key is not None:
            session.api_key.approver_role = session.approver_role or ""  # type: ignore[attr-defined]
        else:
            session.organisation = _sole_organisation(found)
        return session

    def of_organisation(self, organisation: Organisation) -> "SessionQuerySet":
        return self.live().filter(
            Q(api_key__organisation=organisation)
            | Q(device_token__user__in=User.objects.of_organisation(organisation))
        )

    def of_own(self, organisation: Organisation) -> "SessionQuerySet":
        """Sessions of the organisation's keys and of users whose home it is.

        Two index look-ups: a single OR condition would scan all sessions.
        """
        own_users = User.objects.belonging_to(organisation.pk)
        by_key = Session.objects.filter(api_key__organisation=organisation)
        by_device = Session.objects.filter(device_token__user__in=own_users)
        either = by_key.order_by().values("pk").union(by_device.order_by().values("pk"), all=True)
        return self.filter(pk__in=either)

    def of_user(self, user: User) -> "SessionQuerySet":
        return self.live().filter(device_token__user=user)


# What authentication reads. It excludes the digests of secrets; other fields are loaded on access.
_AUTHENTICATION_FIELDS = (
    "created_at",
    "last_used_at",
    "expires_at",
    *(f"api_key__{name}" for name in ("key", "name", "allowed_networks", "scopes", "expires_at")),
    *(f"api_key__organisation__{name}" for name in ("name", "is_active")),
    *(f"api_key__approved_by__{name}" for name in ("is_active", "is_staff", "is_superuser")),
    *(f"device_token__{name}" for name in ("device", "label")),
    *(f"device_token__user__{name}" for name in ("email", "name", "phone", "is_active")),
)
_USERS_ORGANISATIONS = "device_token__user__memberships__organisation"


@lru_cache(maxsize=16)
def _live_by_digest(number_of_digests: int) -> CompiledQuery:
    digests = parameters("digests", Session._meta.get_field("digest"), number_of_digests)
    now = Parameter("now", Session._meta.get_field("expires_at"))
    live = Session.objects.live(now).with_owners().only(*_AUTHENTICATION_FIELDS)
    with_organisations = live.annotate(
        approver_role=approver_role("api_key__"),
        user_organisation_id=F(f"{_USERS_ORGANISATIONS}__id"),
        user_organisation_name=F(f"{_USERS_ORGANISATIONS}__name"),
    )
    return CompiledQuery(with_organisations.filter(digest__in=digests).order_by()[:2])


def _sole_organisation(found: "list[Session]") -> Organisation | None:
    """The user's organisation if there is only one; the query returns a row for each."""
    [session, *others] = found
    primary_key = session.user_organisation_id  # type: ignore[attr-defined]
    if others or primary_key is None:
        return None
    name = session.user_organisation_name  # type: ignore[attr-defined]
    return Organisation.from_db(session._state.db, ("id", "name"), (primary_key, name))


class Session(models.Model):
    """An open session of an API key or a device. Ending it deletes the row."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    api_key = models.ForeignKey(
        ApiKey, null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    device_token = models.ForeignKey(
        DeviceToken, null=True, on_delete=models.CASCADE, related_name="sessions"
    )
    email = models.CharField(
        "e-mail given by the program",
        max_length=254,
        blank=True,
        help_text="Recorded only; not used to authenticate.",
    )
    client_address = models.GenericIPAddressField(
        "opened from", null=True, help_text="Client address that opened the session."
    )
    created_at = models.DateTimeField(
        default=timezone.now, editable=False, help_text="When the session was opened."
    )
    last_used_at = models.DateTimeField(
        default=timezone.now, editable=False, help_text="Accurate to within five minutes."
    )
    expires_at = models.DateTimeField(
        db_index=True, editable=False, help_text="Extended each time the session is used."
    )

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(api_key__isnull=True) ^ Q(device_token__isnull=True),
                name="session_has_one_credential",
            )
        ]

    def __str__(self) -> str:
        return f"Session {self.pk}"

    @property
    def credential(self) -> Credential:
        return Credential.API_KEY if self.device_token_id is None else Credential.TOKEN

    @property
    def is_long_lived(self) -> bool:
        return self.credential is Credential.TOKEN

    @property
    def user(self) -> User | None:
        return None if self.device_token is None else self.device_token.user

    @cached_property
    def organisation(self) -> Organisation | None:
        """The key's organisation, or the user's if there is only one."""
        if self.api_key is not None:
            return self.api_key.organisation
        return None if self.user is None else self.user.sole_organisation()

    def expiry_after_use_at(self, used_at: datetime) -> datetime:
        """The idle limit after that use or the absolute limit, whichever is earlier."""
        return min(used_at + self._idle_lifetime, self.created_at + self._absolute_lifetime)

    @property
    def _idle_lifetime(self) -> timedelta:
        lifetime: timedelta = (
            settings.DEVICE_SESSION_IDLE if self.is_long_lived else settings.API_KEY_SESSION_IDLE
        )
        return lifetime

    @property
    def _absolute_lifetime(self) -> timedelta:
        lifetime: timedelta = (
            settings.DEVICE_SESSION_ABSOLUTE
            if self.is_long_lived
            else settings.API_KEY_SESSION_ABSOLUTE
        )
        return lifetime
