"""Logins of programs by device code (RFC 8628), from their start to the key."""

from datetime import timedelta

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Least
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts import credentials
from accounts.models import Organisation, User
from accounts.models.scopes_field import ScopesField
from accounts.scopes import Scopes, scopes_named

MAX_CLIENT_ID_LENGTH = 64
MAX_KEY_NAME_LENGTH = 200
# What each early poll adds to the interval (RFC 8628, 3.5).
SLOW_DOWN_SECONDS = 5
_MAX_INTERVAL_SECONDS = 3600


class DeviceAuthorizationState(models.TextChoices):
    PENDING = "pending", "Waiting for a person"
    APPROVED = "approved", "Approved"
    DENIED = "denied", "Refused"
    REDEEMED = "redeemed", "Logged in"


def device_code_material(code: str) -> str:
    """The text to digest for a device code, so that no other secret has the same digest."""
    return f"device-code:{code}"


def user_code_material(code: str) -> str:
    return f"user-code:{code}"


class DeviceAuthorizationQuerySet(models.QuerySet["DeviceAuthorization"]):
    def find_by_device_code(self, code: str) -> "DeviceAuthorization | None":
        """The row of that device code, in any state."""
        return self.filter(
            device_digest__in=credentials.digests(device_code_material(code))
        ).first()

    def find_by_user_code(self, code: str) -> "DeviceAuthorization | None":
        """The row of that user code that still waits for a person."""
        return (
            self.open()
            .filter(user_digest__in=credentials.digests(user_code_material(code)))
            .first()
        )

    def open(self) -> "DeviceAuthorizationQuerySet":
        return self.filter(state=DeviceAuthorizationState.PENDING, expires_at__gt=timezone.now())

    def note_poll(self, row: "DeviceAuthorization") -> bool:
        """Records a poll; if it came too early, lengthens the interval and returns false.

        Of concurrent polls only one is in time.
        """
        now = timezone.now()
        latest = now - timedelta(seconds=row.interval_seconds)
        in_time = Q(last_polled_at__isnull=True) | Q(last_polled_at__lte=latest)
        this = self.filter(pk=row.pk)
        if this.filter(in_time, interval_seconds=row.interval_seconds).update(last_polled_at=now):
            return True
        longer = Least(F("interval_seconds") + SLOW_DOWN_SECONDS, _MAX_INTERVAL_SECONDS)
        this.update(last_polled_at=now, interval_seconds=longer)
        return False

    def redeem(self, row: "DeviceAuthorization") -> bool:
        """Takes the approval; false if it was taken before, or has expired."""
        approved = self.filter(
            pk=row.pk, state=DeviceAuthorizationState.APPROVED, expires_at__gt=timezone.now()
        )
        return approved.update(state=DeviceAuthorizationState.REDEEMED) == 1


class DeviceAuthorization(models.Model):
    """A program's request to be logged in, which a person answers in the admin.

    Both codes are shown once and stored as digests. The key is made when the program redeems the
    approval; this row only says what it may get.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    device_digest = models.CharField(max_length=64, unique=True, editable=False)
    user_digest = models.CharField(max_length=64, unique=True, editable=False)
    state = models.CharField(
        max_length=10,
        choices=DeviceAuthorizationState.choices,
        default=DeviceAuthorizationState.PENDING,
        editable=False,
    )
    client_id = models.CharField(
        max_length=MAX_CLIENT_ID_LENGTH, help_text="What the program calls itself; unverified."
    )
    scopes = ScopesField(help_text="What the program asked for, then what the person approved.")
    client_address = models.GenericIPAddressField(null=True)
    user_agent = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True, editable=False)
    interval_seconds = models.PositiveIntegerField(editable=False)
    last_polled_at = models.DateTimeField(null=True, editable=False)

    answered_at = models.DateTimeField(null=True, editable=False)
    answered_by = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    organisation = models.ForeignKey(
        Organisation, null=True, on_delete=models.CASCADE, related_name="+"
    )
    key_name = models.CharField(max_length=MAX_KEY_NAME_LENGTH, blank=True)
    key_expires_at = models.DateTimeField(null=True)

    objects = DeviceAuthorizationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(state__in=["approved", "redeemed"])
                | Q(
                    answered_by__isnull=False,
                    organisation__isnull=False,
                    key_expires_at__isnull=False,
                ),
                name="approval_is_complete",
            )
        ]

    def __str__(self) -> str:
        return f"Login of {self.client_id}"

    @property
    def held_scopes(self) -> Scopes:
        """The scopes that the row names."""
        return scopes_named(self.scopes)

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()
