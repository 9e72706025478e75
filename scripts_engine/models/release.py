"""Releases: what went live together, and plans of what would."""

import uuid

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import ActorKind, Organisation
from core.names import MAX_NAME_CHARACTERS

MAX_NOTE_CHARACTERS = 500


class Action(models.TextChoices):
    """What a change does to its object. The values are the interface's."""

    CREATE = "Create", "Create"
    UPDATE = "Update", "Update"
    RENAME = "Rename", "Rename"
    DELETE = "Delete", "Delete"
    NONE = "None", "None"


class ReleaseQuerySet(models.QuerySet["Release"]):
    def of_organisation(self, organisation: Organisation) -> "ReleaseQuerySet":
        return self.filter(organisation=organisation)

    def changing_script(self, script_id: uuid.UUID) -> "ReleaseQuerySet":
        """Those that changed the script, or a hook or schedule of it."""
        changes = ReleaseChange.objects.filter(release=models.OuterRef("pk"), script_id=script_id)
        return self.filter(models.Exists(changes))

    def putting_live(self, version_id: uuid.UUID) -> "ReleaseQuerySet":
        """Those with which the version went live."""
        changes = ReleaseChange.objects.filter(version_after=version_id)
        changes = changes.exclude(version_before=version_id)
        return self.filter(pk__in=changes.order_by().values("release"))


class Release(models.Model):
    """What went live together: changes of scripts, hooks and schedules, all or nothing."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="releases", db_index=False
    )
    number = models.PositiveIntegerField(help_text="Counts from 1 for each organisation.")
    at = models.DateTimeField(auto_now_add=True)
    note = models.CharField(max_length=MAX_NOTE_CHARACTERS, blank=True, default="")
    undoes = models.ForeignKey(
        "self", null=True, on_delete=models.SET_NULL, related_name="undone_by", editable=False
    )
    # As the organisation may know the actor, like the columns of audit events.
    actor_kind = models.CharField(max_length=16, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=60, blank=True)
    actor_label = models.CharField(max_length=254)
    bytes = models.PositiveIntegerField(help_text="Counted against the storage quota.")

    objects = ReleaseQuerySet.as_manager()

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "number"], name="one_release_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"Release {self.number}"


class ReleaseChange(models.Model):
    """A change of one object: its state before and after, ``None`` where it did not exist."""

    release = models.ForeignKey(
        Release, on_delete=models.CASCADE, related_name="changes", db_index=False
    )
    place = models.PositiveSmallIntegerField(help_text="Within the release, from 0.")
    kind = models.CharField(max_length=16, help_text="Script, Hook or Schedule.")
    object_id = models.UUIDField()
    # The script itself, or the one that the hook or schedule runs.
    script_id = models.UUIDField(db_index=True)
    name = models.CharField(max_length=MAX_NAME_CHARACTERS, help_text="The name afterwards.")
    action = models.CharField(max_length=8, choices=Action.choices)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    # Versions that the states name, which stay as long as the release does.
    version_before = models.UUIDField(null=True, db_index=True)
    version_after = models.UUIDField(null=True, db_index=True)

    class Meta:
        ordering = ["release", "place"]
        constraints = [
            models.UniqueConstraint(fields=["release", "place"], name="one_change_per_place")
        ]
        indexes = [models.Index(fields=["object_id", "-release"], name="change_of_object")]

    def __str__(self) -> str:
        return f"{self.action} {self.kind} {self.name}"


class PlanQuerySet(models.QuerySet["Plan"]):
    def of_organisation(self, organisation: Organisation) -> "PlanQuerySet":
        return self.filter(organisation=organisation)

    def unexpired(self) -> "PlanQuerySet":
        return self.filter(expires_at__gt=timezone.now())

    def living(self) -> "PlanQuerySet":
        """Plans that may still be applied."""
        return self.unexpired().filter(applied_at__isnull=True)


class Plan(models.Model):
    """What a manifest would change, computed at one moment. It lives for an hour."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="plans")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)
    changes = models.JSONField(
        help_text="[{kind, id, name, action, seen, after, source, libraries}]; seen is the digest "
        "of the state before."
    )
    problems = models.JSONField(default=list, help_text="[{path, code, message}]")
    secrets_missing = models.JSONField(default=list, help_text="Names of secrets.")
    made_by = models.CharField(
        max_length=45, help_text="“user” or “key” with the id of whose request made it."
    )
    applied_at = models.DateTimeField(null=True)

    objects = PlanQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Plan {self.pk}"


class Blob(models.Model):
    """A source that was uploaded for a plan and is not in any version yet."""

    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="blobs", db_index=False
    )
    digest = models.CharField(max_length=64, help_text="SHA-256, in hex.")
    source = models.TextField(blank=True)
    used_at = models.DateTimeField(db_index=True, help_text="When it was uploaded or last planned.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organisation", "digest"], name="one_blob_per_digest")
        ]

    def __str__(self) -> str:
        return self.digest
