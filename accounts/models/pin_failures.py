import uuid
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from accounts.email_address import MAX_LENGTH

DAY = timedelta(hours=24)


class PinFailuresQuerySet(models.QuerySet["PinFailures"]):
    def claim_try(self, bucket: str) -> bool:
        """Counts a try as failed before it is compared; false when the bucket is stopped.

        A success takes its count back with ``forgive``. One conditional UPDATE is exact under
        concurrent guesses.
        """
        now = timezone.now()
        # A day in the future was begun before the clock was set back.
        day_over = Q(day_started_at__lte=now - DAY) | Q(day_started_at__gt=now + DAY)
        claimed = self.filter(
            day_over | Q(failures_today__lt=settings.PIN_FAILURES_PER_DAY),
            bucket=bucket,
            consecutive_failures__lt=settings.PIN_CONSECUTIVE_FAILURES,
        ).update(
            failures_today=Case(When(day_over, then=Value(1)), default=F("failures_today") + 1),
            day_started_at=Case(When(day_over, then=Value(now)), default=F("day_started_at")),
            consecutive_failures=F("consecutive_failures") + 1,
        )
        return claimed == 1

    def forgive(self, bucket: str) -> None:
        """Takes the count of a successful try back, and resets the consecutive failures."""
        self.filter(bucket=bucket).update(
            failures_today=Case(
                When(failures_today__gt=0, then=F("failures_today") - 1), default=Value(0)
            ),
            consecutive_failures=0,
        )

    def unlock(self, email: str) -> bool:
        """Resets every count of the address; returns whether there was one."""
        return self.filter(email=email).update(failures_today=0, consecutive_failures=0) > 0


class PinFailures(models.Model):
    """How often PINs failed for an address: in 24 hours, and since the last success.

    A device that the user is logged in on has a bucket of its own, so that a stranger's guesses
    do not lock the owner out. A separate table, because unknown addresses are counted too and
    guesses must not contend for the user's row.
    """

    bucket = models.CharField(max_length=MAX_LENGTH + 40, primary_key=True)
    email = models.CharField("e-mail", max_length=MAX_LENGTH, db_index=True)
    failures_today = models.PositiveIntegerField(default=0)
    day_started_at = models.DateTimeField(default=timezone.now)
    consecutive_failures = models.PositiveIntegerField(default=0)

    objects = PinFailuresQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = "PIN lockout", "PIN lockouts"

    def __str__(self) -> str:
        return f"PIN lockout of {self.email}"

    @property
    def is_stopped(self) -> bool:
        """Whether every PIN is refused now."""
        now = timezone.now()
        is_this_day = now - DAY < self.day_started_at <= now + DAY
        today = self.failures_today if is_this_day else 0
        return (
            today >= settings.PIN_FAILURES_PER_DAY
            or self.consecutive_failures >= settings.PIN_CONSECUTIVE_FAILURES
        )


def strangers_bucket(email: str) -> str:
    return email


def known_devices_bucket(email: str, device: uuid.UUID) -> str:
    return f"{email} {device}"
