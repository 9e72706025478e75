import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from accounts.models import Organisation
from core.plain_text import validate_plain_text
from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, Limits


class ScriptQuerySet(models.QuerySet["Script"]):
    def of_organisation(self, organisation: Organisation) -> "ScriptQuerySet":
        return self.ever_of_organisation(organisation).existing()

    def ever_of_organisation(self, organisation: Organisation) -> "ScriptQuerySet":
        """Includes deleted scripts, whose runs stay readable."""
        return self.filter(organisation=organisation)

    def existing(self) -> "ScriptQuerySet":
        return self.filter(deleted_at__isnull=True)


class Script(models.Model):
    """A Lua program of an organisation, with versions of its source.

    A deleted script keeps its row, because its runs stay readable.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="scripts")
    name = models.CharField(
        max_length=200, validators=[validate_plain_text], help_text="The script's name."
    )
    current_version = models.ForeignKey(
        "scripts_engine.ScriptVersion",
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        editable=False,
    )
    timeout_seconds = models.FloatField(
        default=Limits().wall_seconds,
        validators=[MinValueValidator(0.1), MaxValueValidator(MAX_WALL_SECONDS)],
        help_text=f"Longer runs are stopped. Maximum {MAX_WALL_SECONDS:g} s.",
    )
    is_enabled = models.BooleanField(
        "enabled", default=True, help_text="The hooks of a disabled script return 404."
    )
    max_concurrent_runs = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="Runs at the same time, over all of its hooks. Empty: unlimited.",
    )
    queue_paused_at = models.DateTimeField(
        null=True, editable=False, help_text="Since then, its queued runs wait."
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the script was created.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When the script was last changed.")
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = ScriptQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["organisation", "-created_at", "-id"],
                condition=models.Q(deleted_at__isnull=True),
                name="script_newest_first",
            ),
            models.Index(
                fields=["deleted_at"],
                condition=models.Q(deleted_at__isnull=False),
                name="script_deleted",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def source(self) -> str:
        return "" if self.current_version is None else self.current_version.source
