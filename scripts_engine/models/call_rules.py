"""What a hook demands of its callers: the columns, of which none costs a hook that sets none."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

DAY_SECONDS = 86_400


class Idempotency(models.TextChoices):
    NONE = "none", "None"
    EVENT_ID = "event-id", "Event id"
    BODY_HASH = "body-hash", "Body hash"


class ReplyMode(models.TextChoices):
    SCRIPT = "script", "Script"
    ACCEPTED = "accepted", "Accepted"


class CallRules(models.Model):
    """Abstract: a hook's sender, and the limits and conditions of its calls.

    Null or blank means that a rule is not set. ``scripts_engine.flows.call_rules`` checks what
    may be set.
    """

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
        help_text="How the signature of the sender “hmac” is made: header, algorithm, encoding, "
        "prefix, template, timestampHeader, idHeader, secretEncoding.",
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
        null=True, blank=True, help_text="The methods that run the script: GET, POST or both."
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

    class Meta:
        abstract = True
