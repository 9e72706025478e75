from django.db import models
from django.utils import timezone


class RateWindowQuerySet(models.QuerySet["RateWindow"]):
    def open(self) -> "RateWindowQuerySet":
        return self.filter(ends_at__gt=timezone.now())

    def ended(self) -> "RateWindowQuerySet":
        return self.filter(ends_at__lte=timezone.now())


class RateWindow(models.Model):
    """The hits of one rate limit in its current window."""

    key = models.CharField(max_length=400, primary_key=True)
    hits = models.PositiveIntegerField()
    ends_at = models.DateTimeField(db_index=True)

    objects = RateWindowQuerySet.as_manager()

    def __str__(self) -> str:
        return self.key
