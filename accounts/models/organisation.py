import uuid

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from accounts.models.activation import Activation
from core.plain_text import validate_plain_text


class Organisation(Activation):
    """The tenant: owns API keys, scripts, hooks, runs, secrets and stored values."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(
        max_length=200, validators=[validate_plain_text], help_text="What it is called."
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="An inactive organisation's keys, sessions and hooks are refused at once.",
    )
    runs_kept_days = models.PositiveIntegerField(
        "days that runs are kept",
        null=True,
        blank=True,
        validators=[MaxValueValidator(36_500)],
        help_text="Older runs are deleted, with payloads and logs. Empty: as the installation "
        "says (RUNS_KEPT_DAYS). 0: for ever.",
    )
    runs_kept = models.PositiveIntegerField(
        "number of runs kept",
        null=True,
        blank=True,
        help_text="Beyond so many the oldest are deleted. Empty: as the installation says "
        "(RUNS_KEPT_PER_ORGANISATION). 0: any number.",
    )
    run_bytes_quota = models.BigIntegerField(
        "bytes kept of runs",
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Beyond so many bytes the oldest payloads, replies and logs are removed; what "
        "remains of a run is its outline. Empty: as the installation says "
        "(RUN_BYTES_PER_ORGANISATION). 0: no quota.",
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When it was made.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def run_bytes_limit(self) -> int | None:
        """The quota in force for the payloads of its runs, in bytes; ``None``: no quota."""
        own = self.run_bytes_quota
        return (settings.RUN_BYTES_PER_ORGANISATION if own is None else own) or None

    @property
    def run_bytes_used(self) -> int:
        """What the payloads of its runs take, some seconds old."""
        try:
            used: int = self.run_storage.bytes_used
        except ObjectDoesNotExist:
            return 0
        return max(0, used)
