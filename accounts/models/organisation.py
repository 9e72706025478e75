import uuid

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
    created_at = models.DateTimeField(auto_now_add=True, help_text="When it was made.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
