"""An organisation, and what makes the owner of sessions active."""

import uuid
from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone

from accounts.models.revised import Revised
from core.plain_text import validate_plain_text


class Activation(models.Model):
    """Abstract: an owner of sessions that can be deactivated.

    While it is inactive its sessions are refused. ``sessions_valid_after`` keeps them ended when it
    is activated again.
    """

    is_active: bool
    sessions_valid_after = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self.is_active:
            self.sessions_valid_after = timezone.now()
            if (fields := kwargs.get("update_fields")) is not None:
                kwargs["update_fields"] = {*fields, "sessions_valid_after"}
        super().save(*args, **kwargs)


class Organisation(Activation, Revised):
    """The tenant: owns API keys, scripts, hooks, runs, secrets and stored values."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(
        max_length=200, validators=[validate_plain_text], help_text="The organisation's name."
    )
    is_active = models.BooleanField(
        "active",
        default=True,
        help_text="When off, its keys, sessions and hooks are refused immediately.",
    )
    runs_kept_days = models.PositiveIntegerField(
        "keep runs for (days)",
        null=True,
        blank=True,
        validators=[MaxValueValidator(36_500)],
        help_text="Older runs are deleted, with payloads and logs. Leave empty for the default "
        "(RUNS_KEPT_DAYS); 0 keeps them forever.",
    )
    runs_kept = models.PositiveIntegerField(
        "maximum number of runs",
        null=True,
        blank=True,
        help_text="Beyond this number the oldest runs are deleted. Leave empty for the default "
        "(RUNS_KEPT_PER_ORGANISATION); 0 means no limit.",
    )
    run_bytes_quota = models.BigIntegerField(
        "storage quota for runs (bytes)",
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="Beyond this size the oldest payloads, replies and logs are removed; the runs' "
        "other data stays. Leave empty for the default (RUN_BYTES_PER_ORGANISATION); 0 means no "
        "quota.",
    )
    failure_mails = models.BooleanField(
        "e-mail about failing scripts",
        default=False,
        db_default=False,
        help_text="Administrators get an e-mail when a script starts to fail and when it works "
        "again: at most one an hour for each script.",
    )
    created_at = models.DateTimeField(
        auto_now_add=True, help_text="When the organisation was created."
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def run_bytes_limit(self) -> int | None:
        """The effective quota for what it stores, in bytes; ``None`` for no quota."""
        return _limit(self.run_bytes_quota, settings.RUN_BYTES_PER_ORGANISATION)

    @property
    def run_days_limit(self) -> int | None:
        """For how many days its runs are kept; ``None`` for ever."""
        return _limit(self.runs_kept_days, settings.RUNS_KEPT_DAYS)

    @property
    def run_count_limit(self) -> int | None:
        """How many of its runs are kept; ``None`` for all."""
        return _limit(self.runs_kept, settings.RUNS_KEPT_PER_ORGANISATION)


def _limit(own: int | None, default: int) -> int | None:
    """Its own limit or else the default; 0 means none."""
    return (default if own is None else own) or None
