import uuid

from django.conf import settings
from django.db import models

from accounts.credentials import SecretKind
from accounts.models import Organisation, RotatingSecret
from core.plain_text import validate_plain_text
from scripts_engine.models.call_rules import CallRules
from scripts_engine.models.script import Script


class HookQuerySet(models.QuerySet["Hook"]):
    def of_organisation(self, organisation: Organisation) -> "HookQuerySet":
        return self.ever_of_organisation(organisation).existing()

    def ever_of_organisation(self, organisation: Organisation) -> "HookQuerySet":
        """Includes deleted hooks, whose runs stay readable."""
        return self.filter(script__organisation=organisation)

    def existing(self) -> "HookQuerySet":
        return self.filter(deleted_at__isnull=True, script__deleted_at__isnull=True)

    def callable(self) -> "HookQuerySet":
        """Hooks that accept calls now."""
        return self.existing().filter(
            is_enabled=True, script__is_enabled=True, script__organisation__is_active=True
        )


class Hook(CallRules, RotatingSecret):
    """A webhook that runs one script.

    Its id is the HookID. Of its call token, only a digest is stored.
    """

    SECRET_KIND = SecretKind.CALL_TOKEN

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="hooks")
    name = models.CharField(
        max_length=200,
        blank=True,
        validators=[validate_plain_text],
        help_text="Describes the caller, for example “shop orders”.",
    )
    # Calls find the hook by these.
    digest = models.CharField(max_length=64, unique=True, editable=False)
    previous_digest = models.CharField(
        max_length=64, blank=True, default="", db_index=True, editable=False
    )
    previous_valid_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When the token before the last rotation stops working.",
    )
    is_enabled = models.BooleanField(
        "enabled", default=True, help_text="A disabled hook answers as if it did not exist."
    )
    # The newest of its signing secrets, and the one before it, which ends with its overlap: here
    # so that a call's one look-up joins them.
    signing_secret = models.ForeignKey(
        "scripts_engine.SigningSecret",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        editable=False,
    )
    previous_signing_secret = models.ForeignKey(
        "scripts_engine.SigningSecret",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        editable=False,
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the hook was created.")
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = HookQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["script", "-created_at", "-id"], name="hook_newest_first"),
        ]

    def __str__(self) -> str:
        """The name, or the beginning of the id: complete, it fills several lines of a list."""
        return self.name or f"Hook {str(self.pk)[:8]}…"

    @property
    def organisation(self) -> Organisation:
        return self.script.organisation

    @property
    def is_callable(self) -> bool:
        """Whether the hook accepts calls now; otherwise it answers as if it did not exist."""
        return self.is_enabled and self.script.is_enabled and self.organisation.is_active

    @property
    def secure_url(self) -> str:
        """The URL for HTTP Basic authentication with HookID and call token."""
        return f"{settings.PUBLIC_URL}/hook/secure/{self._path}"

    def url_with(self, call_token: str) -> str:
        """The URL that contains the call token."""
        return f"{settings.PUBLIC_URL}/hook/{self._path}/{call_token}"

    @property
    def url(self) -> str:
        """The URL with a placeholder for the token, which is shown only when it is issued."""
        return self.url_with("<call-token>")

    @property
    def _path(self) -> str:
        return f"{self.script.organisation_id}/{self.script_id}"
