from django.db import models


class TokenBucket(models.Model):
    """A token bucket (as GCRA keeps it): all that counts is when it is full again."""

    key = models.CharField(max_length=100, primary_key=True)
    full_at = models.BigIntegerField(
        db_index=True, help_text="When the bucket is full again, in µs since the epoch."
    )

    def __str__(self) -> str:
        return self.key
