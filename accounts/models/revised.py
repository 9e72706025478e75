"""Rows whose changes are counted, so that nobody overwrites what another has changed meanwhile."""

from django.db import models
from django.utils import timezone

from core.errors import ConflictError


class Revised(models.Model):
    """Abstract: a row with a revision, which grows by one with each change that people make.

    Flows change it with ``accounts.revisions.revise``.
    """

    revision = models.PositiveIntegerField(
        default=1, db_default=1, editable=False, help_text="Grows with each change."
    )
    revised_at = models.DateTimeField(default=timezone.now, editable=False)
    # As the organisation may know the actor, like the labels of audit events.
    revised_by = models.CharField(
        max_length=254, blank=True, default="", db_default="", editable=False
    )

    class Meta:
        abstract = True

    def check_revision(self, expected: int | None) -> None:
        """Raises ``ConflictError`` if the row has moved on. Call it on the locked row."""
        if expected is not None and expected != self.revision:
            raise ConflictError.of_row(str(self), by=self.revised_by, at=self.revised_at)
