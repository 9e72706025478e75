"""What the runs of a day used, counted from runs, which may be deleted before."""

import uuid
from datetime import date

from django.db import models

from accounts.models import Organisation

# Of runs without a hook. Not null, because uniqueness would not count.
NO_HOOK = uuid.UUID(int=0)


class DailyUsageQuerySet(models.QuerySet["DailyUsage"]):
    def of_organisation(self, organisation: Organisation) -> "DailyUsageQuerySet":
        return self.filter(organisation=organisation)

    def between(self, first: date, last: date) -> "DailyUsageQuerySet":
        return self.filter(day__gte=first, day__lte=last)


class DailyUsage(models.Model):
    """What the runs of a script by a hook, or without one, used on a day of UTC."""

    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.DateField(db_index=True)
    # Not foreign keys: usage outlasts deleted scripts, and hooks belong to an app above this one.
    script_id = models.UUIDField()
    hook_id = models.UUIDField(default=NO_HOOK)
    calls = models.PositiveBigIntegerField(help_text="Runs, with all attempts at one as one.")
    failures = models.PositiveBigIntegerField(help_text="Those that failed, after all attempts.")
    bytes = models.PositiveBigIntegerField(help_text="Of payloads and replies.")
    cpu_seconds = models.FloatField()

    objects = DailyUsageQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "day", "script_id", "hook_id"], name="one_usage_per_day"
            )
        ]
        indexes = [models.Index(fields=["script_id", "day"], name="usage_of_script")]

    def __str__(self) -> str:
        return f"Usage of script {self.script_id} on {self.day}"


class UsagePosition(models.Model):
    """How far runs are counted, in the order in which they ended. One row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    counted_before = models.BigIntegerField(default=0, help_text="A commit number.")

    def __str__(self) -> str:
        return f"Runs counted before {self.counted_before}"
