import uuid
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Concat
from django.utils import timezone

from accounts.addresses import MAX_LENGTH

DAY = timedelta(hours=24)
_NAMED = " named"


class Bucket(NamedTuple):
    """What counts the failures of some devices at an address, and when it stops these."""

    name: str
    email: str
    failures_per_day: int
    # None: no number stops them until somebody unlocks them.
    consecutive_failures: int | None


def strangers_bucket(email: str) -> Bucket:
    """The bucket of devices that are not known and have not named themselves."""
    return Bucket(email, email, settings.PIN_FAILURES_PER_DAY, settings.PIN_CONSECUTIVE_FAILURES)


def named_devices_bucket(email: str) -> Bucket:
    """The bucket of unknown devices that named themselves when they asked for a code.

    A day at most stops them: strangers can fill it, and they must not lock new devices out for
    longer than by using up the day's codes.
    """
    return Bucket(f"{email}{_NAMED}", email, settings.PIN_FAILURES_OF_NAMED_PER_DAY, None)


def known_devices_bucket(email: str, device: uuid.UUID) -> Bucket:
    """The bucket of one device on which the user is logged in."""
    return strangers_bucket(email)._replace(name=f"{email} {device}")


class PinFailuresQuerySet(models.QuerySet["PinFailures"]):
    def claim_try(self, bucket: Bucket) -> bool:
        """Counts a try as failed before it is compared; false when the bucket is stopped.

        A success takes its count back with ``forgive``, and a try that nothing was compared for
        with ``give_back``. One conditional UPDATE is exact under concurrent guesses.
        """
        now = timezone.now()
        # A day in the future was begun before the clock was set back.
        day_over = Q(day_started_at__lte=now - DAY) | Q(day_started_at__gt=now + DAY)
        rows = self._rows_of(bucket)
        if bucket.consecutive_failures is not None:
            rows = rows.filter(consecutive_failures__lt=bucket.consecutive_failures)
        claimed = rows.filter(day_over | Q(failures_today__lt=bucket.failures_per_day)).update(
            failures_today=Case(When(day_over, then=Value(1)), default=F("failures_today") + 1),
            day_started_at=Case(When(day_over, then=Value(now)), default=F("day_started_at")),
            consecutive_failures=F("consecutive_failures") + 1,
        )
        return claimed == 1

    def lock(self, bucket: Bucket) -> None:
        """Locks the bucket until the transaction ends.

        Call before locking the user or a challenge: a login and the next code would otherwise wait
        for each other.
        """
        self._rows_of(bucket).select_for_update().first()

    def forgive(self, bucket: Bucket) -> None:
        """Takes the count of a successful try back, and resets the consecutive failures."""
        self._rows_of(bucket).update(
            failures_today=_one_less("failures_today"), consecutive_failures=0
        )

    def give_back(self, bucket: Bucket) -> None:
        """Takes the count of a try back that guessed nothing."""
        self._rows_of(bucket).update(
            failures_today=_one_less("failures_today"),
            consecutive_failures=_one_less("consecutive_failures"),
        )

    def _rows_of(self, bucket: Bucket) -> "PinFailuresQuerySet":
        # The e-mail too: typed as an address, the name of another's bucket must find nothing.
        return self.filter(bucket=bucket.name, email=bucket.email)

    def stopped(self) -> "PinFailuresQuerySet":
        """Those that ``is_stopped`` is true of."""
        now = timezone.now()
        this_day = Q(day_started_at__gt=now - DAY, day_started_at__lte=now + DAY)
        named = Q(bucket=Concat(F("email"), Value(_NAMED)))
        of_named = this_day & Q(failures_today__gte=settings.PIN_FAILURES_OF_NAMED_PER_DAY)
        of_others = (this_day & Q(failures_today__gte=settings.PIN_FAILURES_PER_DAY)) | Q(
            consecutive_failures__gte=settings.PIN_CONSECUTIVE_FAILURES
        )
        return self.filter((named & of_named) | (~named & of_others))

    def unlock(self, email: str) -> bool:
        """Resets every count of the address; returns whether there was one."""
        return self.filter(email=email).update(failures_today=0, consecutive_failures=0) > 0


def _one_less(count: str) -> Case:
    return Case(When(**{f"{count}__gt": 0}, then=F(count) - 1), default=Value(0))


class PinFailures(models.Model):
    """How often PINs failed for an address: in 24 hours, and since the last success.

    A device that the user is logged in on has a bucket of its own, and unknown devices that named
    themselves share another, so that a stranger's guesses do not lock the owner out. A separate
    table, because unknown addresses are counted too and guesses must not contend for the user's
    row.
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
        named = named_devices_bucket(self.email)
        if self.bucket == named.name:
            return today >= named.failures_per_day
        return today >= settings.PIN_FAILURES_PER_DAY or self.is_stopped_until_unlocked

    @property
    def is_stopped_until_unlocked(self) -> bool:
        """Whether so many PINs in a row were wrong that only an administrator ends the stop."""
        return (
            self.bucket != named_devices_bucket(self.email).name
            and self.consecutive_failures >= settings.PIN_CONSECUTIVE_FAILURES
        )
