import uuid

from django.core.validators import MaxValueValidator
from django.db import models

from accounts.models.activation import Activation
from accounts.plain_text import validate_plain_text


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
    created_at = models.DateTimeField(auto_now_add=True, help_text="When it was made.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
