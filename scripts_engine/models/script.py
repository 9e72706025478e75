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
        """Deleted ones too: for what they left behind."""
        return self.filter(organisation=organisation)

    def existing(self) -> "ScriptQuerySet":
        return self.filter(deleted_at__isnull=True)


class Script(models.Model):
    """A Lua program of an organisation. Its source is that of its current version.

    A deleted script keeps its row, because its runs stay readable.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="scripts")
    name = models.CharField(
        max_length=200, validators=[validate_plain_text], help_text="What it is called."
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
        help_text=f"A run is stopped after this time; at most {MAX_WALL_SECONDS:g} s.",
    )
    is_enabled = models.BooleanField(
        "enabled", default=True, help_text="The hooks of a disabled script answer 404."
    )
    created_at = models.DateTimeField(auto_now_add=True, help_text="When it was made.")
    updated_at = models.DateTimeField(auto_now=True, help_text="When it was last changed.")
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = ScriptQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["organisation", "-created_at", "-id"],
                condition=models.Q(deleted_at__isnull=True),
                name="script_newest_first",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def source(self) -> str:
        return "" if self.current_version is None else self.current_version.source
