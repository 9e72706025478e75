import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from accounts import credentials
from accounts.models.organisation import Organisation
from accounts.plain_text import validate_plain_text


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def of_organisation(self, organisation: Organisation) -> "ApiKeyQuerySet":
        return self.filter(organisation=organisation)

    def usable(self) -> "ApiKeyQuerySet":
        """Keys that open sessions now: not revoked, not expired, of an active organisation."""
        return self.filter(
            models.Q(expires_at__isnull=True) | models.Q(expires_at__gt=timezone.now()),
            revoked_at__isnull=True,
            organisation__is_active=True,
        )

    def authenticate(self, key: str, secret: str) -> "ApiKey | None":
        """The usable key that the secret belongs to. Every refusal takes as long."""
        row = self.usable().select_related("organisation").filter(key=key).first()
        stored = None if row is None else credentials.Digest(row.digest, row.pepper_version)
        return row if credentials.matches(secret, stored) else None


class ApiKey(models.Model):
    """A program's credential: a public key and a secret of which only the digest is kept."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="api_keys"
    )
    name = models.CharField(
        max_length=200,
        validators=[validate_plain_text],
        help_text="What uses it: “warehouse sync”.",
    )
    key = models.CharField(
        max_length=16,
        unique=True,
        default=credentials.generate_api_key_id,
        editable=False,
        help_text="Its public half: POST /session takes it as uid.",
    )
    digest = models.CharField(max_length=64, editable=False)
    pepper_version = models.PositiveIntegerField(editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When it was issued.")
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="Empty: does not expire (UTC)."
    )
    revoked_at = models.DateTimeField(
        null=True, editable=False, help_text="Since when it is refused."
    )
    last_used_at = models.DateTimeField(
        null=True, editable=False, help_text="When it last opened a session."
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
