from django.db import models


class RateCounter(models.Model):
    """The state of one rate limit, which starts again when it has ended."""

    key = models.CharField(max_length=400, primary_key=True)
    hits = models.PositiveIntegerField(help_text="In a window; 0 in a token bucket.")
    ends_at = models.BigIntegerField(
        db_index=True,
        help_text="When the window ends or the bucket is full again, in µs since the epoch.",
    )

    def __str__(self) -> str:
        return self.key
