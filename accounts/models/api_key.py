import uuid
from collections.abc import Iterable
from datetime import timedelta
from functools import cache

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.functional import cached_property

from accounts import credentials
from accounts.addresses import is_within
from accounts.models.membership import Membership
from accounts.models.organisation import Organisation
from accounts.models.rotating_secret import RotatingSecret
from accounts.models.scopes_field import ScopesField
from accounts.scopes import Scopes, scopes_named
from core.database.compiled_query import CompiledQuery, Parameter
from core.plain_text import validate_plain_text

UNUSED_AFTER = timedelta(days=90)


def _memberships_of_approver(key: str) -> QuerySet[Membership]:
    """The one from before the approval: a later one does not bring the key back."""
    return Membership.objects.filter(
        user=OuterRef(f"{key}approved_by"),
        organisation=OuterRef(f"{key}organisation"),
        created_at__lte=OuterRef(f"{key}created_at"),
    ).order_by()


def approver_role(key: str = "") -> Subquery:
    """The role of the person who approved the key; ``key`` leads to it, as in ``"api_key__"``."""
    return Subquery(_memberships_of_approver(key).values("role")[:1])


def has_approver(key: str = "") -> Q:
    """Keys that nobody had to approve, or whose approver is still active and a member."""
    approver = f"{key}approved_by"
    ended = f"{approver}__sessions_valid_after"
    is_as_then = Q(**{f"{ended}__isnull": True}) | Q(**{f"{key}created_at__gt": F(ended)})
    is_member = Q(**{f"{approver}__is_superuser": True}) | Q(Exists(_memberships_of_approver(key)))
    is_approved = Q(**{f"{approver}__is_active": True}) & is_as_then & is_member
    return Q(**{f"{approver}__isnull": True}) | is_approved


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def of_organisation(self, organisation: Organisation) -> "ApiKeyQuerySet":
        return self.filter(organisation=organisation)

    def ended_with_approver(self) -> "ApiKeyQuerySet":
        """Keys that are not revoked, and whose approver has left or was deactivated."""
        approved = self.filter(approved_by__isnull=False, revoked_at__isnull=True)
        return approved.filter(~has_approver())

    def descendants_of(self, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Keys that were created with these, directly or through others, and are not revoked."""
        found: set[uuid.UUID] = set()
        ahead = set(ids)
        while ahead:
            created = self.filter(created_with__in=ahead, revoked_at__isnull=True).order_by()
            ahead = set(created.values_list("pk", flat=True)) - found
            found |= ahead
        return found

    def bound_to(self, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Those that the logins of programs among these created, which end with the login.

        A login of a program is a key that a person approved, and so are those that it creates.
        """
        return self.filter(approved_by__isnull=False).descendants_of(ids)

    def expiring_within(self, span: timedelta) -> "ApiKeyQuerySet":
        """Valid keys that expire within the span."""
        now = timezone.now()
        return self.filter(revoked_at__isnull=True, expires_at__gt=now, expires_at__lte=now + span)

    def find_by_key(self, key: str) -> "ApiKey | None":
        """The key with that public half, whether it may be used or not."""
        return self.with_owners().filter(key=key).first()

    def with_owners(self) -> "ApiKeyQuerySet":
        """With what a login checks: the organisation, and the approver with their role."""
        rows = self.select_related("organisation", "approved_by")
        return rows.annotate(role_of_approver=approver_role())


class ApiKey(RotatingSecret):
    """A program's credential: a public key and a rotating secret."""

    SECRET_KIND = credentials.SecretKind.API_KEY

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="api_keys"
    )
    name = models.CharField(
        max_length=200,
        validators=[validate_plain_text],
        help_text="The program that uses it, such as “warehouse sync”.",
    )
    key = models.CharField(
        max_length=16,
        unique=True,
        default=credentials.generate_api_key_id,
        editable=False,
        help_text="The public half: the uid of POST /session.",
    )
    allowed_networks = models.JSONField(
        default=list,
        blank=True,
        help_text="Networks it may be used from, such as 192.0.2.0/24. Leave empty for any.",
    )
    scopes = ScopesField(help_text="What it may do.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False
    )
    created_with = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        editable=False,
        related_name="keys_created",
        help_text="The key that created it, which it does not outlast.",
    )
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        editable=False,
        related_name="+",
        help_text="The key belongs to this person, and never has more scopes than they have.",
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the key was created.")
    expires_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="When the key stops working (UTC). Leave empty for no expiry.",
    )
    expiry_notice_days = models.PositiveSmallIntegerField(null=True, editable=False)
    revoked_at = models.DateTimeField(
        null=True, editable=False, help_text="When the key was revoked."
    )
    last_used_at = models.DateTimeField(
        null=True, editable=False, help_text="When the key last opened a session."
    )
    last_used_from = models.GenericIPAddressField(
        null=True, editable=False, help_text="Client address of the last session it opened."
    )

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["organisation", "-created_at", "-id"])]

    def __str__(self) -> str:
        return f"{self.name} ({self.key})"

    @property
    def held_scopes(self) -> Scopes:
        """The scopes that the row names."""
        return scopes_named(self.scopes)

    @cached_property
    def approver_role(self) -> str:
        """The approver's role at present; empty without one. Look-ups read it along."""
        if not hasattr(self, "role_of_approver"):
            rows = ApiKey.objects.filter(pk=self.pk)
            return rows.values_list(approver_role(), flat=True).first() or ""
        return self.role_of_approver or ""

    @property
    def has_lost_approver(self) -> bool:
        """Whether the key ended with its approver's membership, logins or account."""
        approver = self.approved_by
        if approver is None:
            return False
        ended_at = approver.sessions_valid_after
        is_as_then = ended_at is None or self.created_at > ended_at
        is_member = approver.is_superuser or self.approver_role != ""
        return not (approver.is_active and is_as_then and is_member)

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def is_unused(self) -> bool:
        """Whether the key is valid but has not opened a session for 90 days."""
        since = self.last_used_at or self.created_at
        is_valid = self.revoked_at is None and not self.is_expired
        return is_valid and since <= timezone.now() - UNUSED_AFTER

    def allows(self, client_address: str) -> bool:
        return is_within(client_address, self.allowed_networks)


def look_up_api_key(key: str) -> ApiKey | None:
    """``ApiKey.objects.find_by_key`` as a compiled query, for logins."""
    found: ApiKey | None = _by_key().first(key=key)
    return found


@cache
def _by_key() -> CompiledQuery:
    key = Parameter("key", ApiKey._meta.get_field("key"))
    return CompiledQuery(ApiKey.objects.all().with_owners().filter(key=key))
