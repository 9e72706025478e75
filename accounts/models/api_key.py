import uuid
from datetime import timedelta
from functools import cache

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts import credentials
from accounts.models.organisation import Organisation
from accounts.models.rotating_secret import RotatingSecret
from accounts.networks import is_within
from core.database.compiled_query import CompiledQuery, Parameter
from core.plain_text import validate_plain_text

UNUSED_AFTER = timedelta(days=90)


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def of_organisation(self, organisation: Organisation) -> "ApiKeyQuerySet":
        return self.filter(organisation=organisation)

    def expiring_within(self, span: timedelta) -> "ApiKeyQuerySet":
        """Valid keys that expire within the span."""
        now = timezone.now()
        return self.filter(revoked_at__isnull=True, expires_at__gt=now, expires_at__lte=now + span)

    def find_by_key(self, key: str) -> "ApiKey | None":
        """The key with that public half, whether it may be used or not."""
        return self.select_related("organisation").filter(key=key).first()

    @staticmethod
    def look_up(key: str) -> "ApiKey | None":
        """``find_by_key`` as a compiled query, for logins."""
        found: ApiKey | None = _by_key().first(key=key)
        return found


@cache
def _by_key() -> CompiledQuery:
    key = Parameter("key", ApiKey._meta.get_field("key"))
    return CompiledQuery(ApiKey.objects.select_related("organisation").filter(key=key))


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
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False
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
