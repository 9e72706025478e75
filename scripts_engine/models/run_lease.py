from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from scripts_engine.models.hook import Hook
from scripts_engine.models.script import Script


class RunLeaseQuerySet(models.QuerySet["RunLease"]):
    def ended(self) -> "RunLeaseQuerySet":
        return self.filter(ends_at__lte=timezone.now())


class RunLease(models.Model):
    """A run in progress that counts against the limits of its hook and script.

    Deleted after the run; one that its process left behind no longer counts when it has ended.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    hook = models.ForeignKey(Hook, null=True, on_delete=models.CASCADE, related_name="+")
    script = models.ForeignKey(Script, on_delete=models.CASCADE, related_name="+")
    ends_at = models.DateTimeField()

    objects = RunLeaseQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Lease {self.pk}"
