import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from accounts.models import Organisation, Revised
from core.names import MAX_NAME_CHARACTERS, NameKey, validate_name_characters
from scripts_engine.models.script import Script


class Overlap(models.TextChoices):
    """What happens at a tick while a run of an earlier one has not ended."""

    SKIP = "skip", "Skip"
    BUFFER_ONE = "buffer-one", "Buffer one"
    ALLOW_ALL = "allow-all", "Allow all"


class CatchUp(models.TextChoices):
    """Which of the ticks that nobody was there to run are run afterwards."""

    NONE = "none", "None"
    LATEST = "latest", "Latest"
    ALL = "all", "All"


class TickOutcome(models.TextChoices):
    RAN = "ran", "Ran"
    LATE = "late", "Late"
    SKIPPED_OVERLAP = "skipped-overlap", "Skipped: overlap"
    SKIPPED_MISSED = "skipped-missed", "Skipped: missed"


class ScheduleQuerySet(models.QuerySet["Schedule"]):
    def of_organisation(self, organisation: Organisation) -> "ScheduleQuerySet":
        return self.filter(organisation=organisation, script__deleted_at__isnull=True)


class Schedule(Revised):
    """When a script runs by itself."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="schedules"
    )
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(
        max_length=MAX_NAME_CHARACTERS,
        validators=[validate_name_characters],
        help_text="What it is for, for example “nightly report”.",
    )
    name_key = NameKey()
    cron = models.CharField(
        max_length=200, help_text="Minute, hour, day of month, month, day of week."
    )
    time_zone = models.CharField(
        max_length=64, default="UTC", help_text="An IANA time zone, for example Europe/Berlin."
    )
    payload = models.BinaryField(default=b"", help_text="The body that the script gets.")
    is_enabled = models.BooleanField("enabled", default=True)
    overlap = models.CharField(max_length=16, choices=Overlap.choices, default=Overlap.SKIP)
    catch_up = models.CharField(max_length=16, choices=CatchUp.choices, default=CatchUp.LATEST)
    catch_up_window_seconds = models.PositiveIntegerField(
        default=3600,
        validators=[MinValueValidator(0), MaxValueValidator(7 * 86_400)],
        help_text="Older missed ticks are not run, in s.",
    )
    last_tick_at = models.DateTimeField(
        null=True, editable=False, help_text="The last tick that was dealt with."
    )
    next_tick_at = models.DateTimeField(
        null=True, editable=False, help_text="The next tick; null while disabled."
    )
    buffered_tick_at = models.DateTimeField(
        null=True, editable=False, help_text="The tick that waits for the run before it to end."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ScheduleQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["next_tick_at"],
                condition=Q(next_tick_at__isnull=False),
                name="schedule_next_tick",
            ),
            models.Index(
                fields=["buffered_tick_at"],
                condition=Q(buffered_tick_at__isnull=False),
                name="schedule_buffered_tick",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name_key"], name="one_schedule_per_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ScheduleTick(models.Model):
    """What came of a tick. The newest are kept."""

    schedule = models.ForeignKey(
        Schedule, on_delete=models.CASCADE, related_name="ticks", db_index=False
    )
    tick_at = models.DateTimeField()
    outcome = models.CharField(max_length=16, choices=TickOutcome.choices)
    # Not a foreign key: the run may be deleted before the tick.
    run_id = models.UUIDField(null=True)
    recorded_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "tick_at"], name="one_outcome_a_tick"),
        ]

    def __str__(self) -> str:
        return f"Tick of {self.schedule_id} at {self.tick_at:%Y-%m-%d %H:%M}"
