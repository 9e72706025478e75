from django.conf import settings
from django.db import models
from uuid_utils.compat import uuid7

from accounts.models import ApiKey, Organisation
from scripts_engine.models.script import Script


class ScriptVersionQuerySet(models.QuerySet["ScriptVersion"]):
    def of_organisation(self, organisation: Organisation) -> "ScriptVersionQuerySet":
        return self.filter(script__in=Script.objects.of_organisation(organisation))


class ScriptVersion(models.Model):
    """A version of a script's source. Immutable; each run refers to the version that ran."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="Counts from 1 for each script.")
    source = models.TextField(blank=True, help_text="Lua 5.4.")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_with = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True, help_text="When the version was saved.")

    objects = ScriptVersionQuerySet.as_manager()

    class Meta:
        verbose_name = "version"
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["script", "number"], name="one_version_per_number")
        ]

    def __str__(self) -> str:
        return f"Version {self.number} of {self.script}"

    @property
    def author(self) -> str | None:
        """The e-mail of the person, if still a member, or the name of the key that saved it."""
        if self.created_by is not None:
            email: str | None = self.created_by.email_known_to(self.script.organisation_id)
            return email
        return None if self.created_with is None else self.created_with.name
