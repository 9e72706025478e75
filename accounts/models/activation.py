from typing import Any

from django.db import models
from django.utils import timezone


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
