import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from accounts.credentials import SecretKind
from accounts.models import Organisation, Revised, RotatingSecret
from core.names import MAX_NAME_CHARACTERS, NameKey, validate_name_characters
from scripts_engine.models.script import Script, ScriptVersion

DAY_SECONDS = 86_400


class Idempotency(models.TextChoices):
    NONE = "none", "None"
    EVENT_ID = "event-id", "Event id"
    BODY_HASH = "body-hash", "Body hash"


class ReplyMode(models.TextChoices):
    SCRIPT = "script", "Script"
    ACCEPTED = "accepted", "Accepted"


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
            is_enabled=True,
            script__is_enabled=True,
            script__current_version__isnull=False,
            script__organisation__is_active=True,
        )


class Hook(RotatingSecret, Revised):
    """A webhook that runs one script.

    Its id is the HookID. Of its call token, only a digest is stored. Its rules are described in
    ``hooks.rules``; a rule that is null or blank is not set.
    """

    SECRET_KIND = SecretKind.CALL_TOKEN

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="hooks")
    name = models.CharField(
        max_length=MAX_NAME_CHARACTERS,
        validators=[validate_name_characters],
        help_text="Describes the caller, for example “shop orders”.",
    )
    name_key = NameKey()
    pinned_version = models.ForeignKey(
        ScriptVersion,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        editable=False,
        help_text="The version that it runs; null: the live one.",
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
    # Only of a hook whose sender signs its calls: then the URL alone runs nothing.
    call_token_ciphertext = models.BinaryField(null=True, editable=False)
    needs_rotation = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Whether its token was kept while its sender signed, which it no longer does.",
    )
    is_enabled = models.BooleanField(
        "enabled", default=True, help_text="A disabled hook answers as if it did not exist."
    )
    # The newest of its signing secrets, and the one before it, which ends with its overlap: here
    # so that a call's one look-up joins them.
    signing_secret = models.ForeignKey(
        "hooks.SigningSecret",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        editable=False,
    )
    previous_signing_secret = models.ForeignKey(
        "hooks.SigningSecret",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
        editable=False,
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the hook was created.")
    deleted_at = models.DateTimeField(null=True, editable=False)

    # The sender, and the rules of the hook's calls.
    sender = models.CharField(
        max_length=32,
        blank=True,
        default="",
        db_default="",
        help_text="Who calls. Calls that this sender did not sign are refused.",
    )
    hmac = models.JSONField(
        null=True,
        blank=True,
        help_text="How the signature of the sender “hmac” is made, under the options' API names.",
    )
    event_id_pointers = models.JSONField(
        null=True,
        blank=True,
        help_text="Up to 3 JSON pointers (RFC 6901) to the event id in a signed body.",
    )
    verify_token_ciphertext = models.BinaryField(null=True, editable=False)
    handshake_expected_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Until then, a first handshake may bring the signing secret.",
    )
    signed_url = models.CharField(
        max_length=2000,
        blank=True,
        default="",
        db_default="",
        help_text="The URL that the sender signs, if it is not the hook's own.",
    )
    tolerance_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(10), MaxValueValidator(DAY_SECONDS)],
        help_text="How old or early a signed time stamp may be, in s. Empty: as the sender "
        "advises.",
    )
    allowed_networks = models.JSONField(
        null=True, blank=True, help_text="Networks of the callers in CIDR notation; empty: all."
    )
    methods = models.JSONField(
        null=True,
        blank=True,
        help_text="The methods that run the script, out of GET, POST, PUT, PATCH and "
        "DELETE. Empty: GET and POST.",
    )
    allow_path = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether a path may follow the hook's address.",
    )
    allowed_origins = models.JSONField(
        null=True,
        blank=True,
        help_text="Origins whose pages may call the hook's URL, as https://shop.example; empty: "
        "none.",
    )
    max_body_bytes = models.PositiveIntegerField(
        null=True, blank=True, help_text="The largest payload, in bytes. Empty: as for all hooks."
    )
    idempotency = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        choices=Idempotency.choices,
        help_text="How a repeated delivery is recognised. Empty: by the event id if the sender "
        "signs one.",
    )
    idempotency_window_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(7 * DAY_SECONDS)],
        help_text="How long a delivery is remembered, in s. Empty: a day.",
    )
    calls_per_minute = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text="Accepted calls a minute. Empty: unlimited.",
    )
    burst = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1_000_000)],
        help_text="Calls that may come at once. Empty: a tenth of the calls a minute.",
    )
    max_concurrent_runs = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Runs at the same time. Empty: unlimited.",
    )
    reply_mode = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        choices=ReplyMode.choices,
        help_text="Whether callers wait for the script's reply, or get one as soon as the run is "
        "queued. Empty: they wait.",
    )
    accepted_status = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(200), MaxValueValidator(299)],
        help_text="The status of the reply to a call that was queued. Empty: as the sender "
        "expects, or 202.",
    )
    max_attempts = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
        help_text="How often a queued run is tried. Empty: as for all hooks.",
    )

    objects = HookQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["script", "-created_at", "-id"], name="hook_newest_first"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["script", "name_key"],
                condition=models.Q(deleted_at__isnull=True),
                name="one_hook_per_name",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def organisation(self) -> Organisation:
        return self.script.organisation

    @property
    def is_callable(self) -> bool:
        """Whether the hook accepts calls now; otherwise it answers as if it did not exist."""
        return self.is_enabled and self.script.can_run

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
