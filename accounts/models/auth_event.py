from datetime import datetime
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.db import models
from uuid_utils.compat import uuid7

from accounts.addresses import MAX_LENGTH
from accounts.models.organisation import Organisation
from core.database import ids
from core.database.commit_order import THIS_COMMIT, CommitNumber


class AuthEventKind(models.TextChoices):
    """What happened to an account; apps above this one register kinds of their own.

    The values are part of the interface; the labels are shown in the admin.
    """

    SESSION_OPENED = "session.opened", "Session opened"
    SESSION_REFUSED = "session.refused", "Session refused"
    SESSION_ENDED = "session.ended", "Session ended"
    PIN_REQUESTED = "pin.requested", "PIN requested"
    PIN_SENT = "pin.sent", "PIN sent"
    PIN_NOT_SENT = "pin.not-sent", "PIN not sent"
    PIN_REFUSED = "pin.refused", "PIN refused"
    ACCOUNT_UNLOCKED = "account.unlocked", "Login unlocked"
    DEVICE_ADDED = "device.added", "Device added"
    DEVICE_REVOKED = "device.revoked", "Device revoked"
    API_KEY_ISSUED = "api-key.issued", "API key created"
    API_KEY_ROTATED = "api-key.rotated", "API key rotated"
    API_KEY_CHANGED = "api-key.changed", "API key changed"
    API_KEY_REVOKED = "api-key.revoked", "API key revoked"
    SCOPE_REFUSED = "scope.refused", "Refused for want of scope"
    USER_CREATED = "user.created", "User created"
    USER_CHANGED = "user.changed", "User changed"
    USER_DEACTIVATED = "user.deactivated", "User deactivated"
    STAFF_GRANTED = "staff.granted", "Staff access granted"
    STAFF_REVOKED = "staff.revoked", "Staff access revoked"
    SUPERUSER_GRANTED = "superuser.granted", "Superuser access granted"
    SUPERUSER_REVOKED = "superuser.revoked", "Superuser access revoked"
    PASSWORD_SET = "password.set", "Password set"
    MEMBER_INVITED = "member.invited", "Member invited"
    MEMBER_REMOVED = "member.removed", "Member removed"
    ROLE_CHANGED = "membership.role-changed", "Role changed"
    INVITATION_ACCEPTED = "invitation.accepted", "Invitation accepted"
    INVITATION_DECLINED = "invitation.declined", "Invitation declined"
    INVITATION_WITHDRAWN = "invitation.withdrawn", "Invitation withdrawn"
    ORGANISATION_CREATED = "organisation.created", "Organisation created"
    ORGANISATION_CHANGED = "organisation.changed", "Organisation changed"
    SECOND_FACTOR_CHANGED = "second-factor.changed", "Second factor changed"
    TEST_MESSAGE_SENT = "test-message.sent", "Test message sent"
    TEST_MESSAGE_NOT_SENT = "test-message.not-sent", "Test message not sent"
    RATE_LIMITED = "rate.limited", "Rate limit reached"
    ADMIN_LOGIN = "admin.login", "Admin login"
    ADMIN_LOGIN_REFUSED = "admin.login-refused", "Admin login failed"


class ActorKind(models.TextChoices):
    """Who acted. An outsider belongs to another organisation than the event, which may not know
    more; an operator is a superuser.
    """

    USER = "user", "User"
    OPERATOR = "operator", "Moonhook operator"
    OUTSIDER = "outsider", "An administrator of another organisation"
    API_KEY = "api-key", "API key"
    COMMAND = "command", "Command"
    SYSTEM = "system", "Moonhook"
    STRANGER = "stranger", "Not logged in"


# Room for all names of scopes twice, before and after a change.
MAX_REASON_LENGTH = 400

# Actors of whom the organisation of the event may know no more.
HIDDEN_ACTORS = (ActorKind.OPERATOR, ActorKind.OUTSIDER)


class SubjectKind(models.TextChoices):
    """What or whom an event is about; apps above this one register kinds of their own."""

    USER = "user", "User"
    ADDRESS = "address", "Address"
    ORGANISATION = "organisation", "Organisation"
    INVITATION = "invitation", "Invitation"
    API_KEY = "api-key", "API key"
    DEVICE = "device", "Device"
    SESSION = "session", "Session"


_event_kinds: list[type[models.TextChoices]] = [AuthEventKind]
_subject_kinds: list[type[models.TextChoices]] = [SubjectKind]


def register_kinds(events: type[models.TextChoices], subjects: type[models.TextChoices]) -> None:
    """Registers what happens in an app, and to what, at start."""
    _event_kinds.append(events)
    _subject_kinds.append(subjects)


def event_kinds() -> list[tuple[str, str]]:
    """The values and labels of all kinds of events."""
    return [choice for kinds in _event_kinds for choice in kinds.choices]


def subject_kinds() -> list[tuple[str, str]]:
    return [choice for kinds in _subject_kinds for choice in kinds.choices]


class AuditReason(StrEnum):
    """Why something was refused, or what an event was about. The audit alone shows it."""

    MALFORMED_SECRET = "malformed-secret"  # noqa: S105
    MALFORMED_KEY = "malformed-key"
    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_DEVICE = "unknown-device"
    WRONG_SECRET = "wrong-secret"  # noqa: S105
    WRONG_EMAIL = "wrong-email"
    REVOKED = "revoked"
    EXPIRED = "expired"
    INACTIVE_USER = "inactive-user"
    INACTIVE_ORGANISATION = "inactive-organisation"
    ADDRESS_NOT_ALLOWED = "address-not-allowed"
    CHANGED = "changed"
    APPROVER_GONE = "approver-gone"
    CREATED_WITH_IT = "created-with-it"
    ADMINISTRATOR_INVITED = "administrator-invited"
    PASSWORD_SET_BY_LINK = "password-set-by-link"  # noqa: S105

    MALFORMED_PIN = "malformed"
    NO_OPEN_CHALLENGE = "no-open-challenge"
    ACCOUNT_STOPPED = "account-stopped"
    WRONG_OR_EXPIRED_PIN = "wrong-or-expired"
    USED_OR_INACTIVE = "used-or-inactive"
    REQUESTED_TOO_LONG_AGO = "asked for too long ago"

    SMS_LIMIT = "sms"
    MAIL_LIMIT = "mails"
    ADDRESS_LIMIT = "addresses"

    ADMIN_LOGIN = "admin-login"
    LOCKED_OUT = "locked-out"
    WRONG_CREDENTIALS = "wrong-credentials"
    NOT_STAFF = "not-staff"
    WRONG_CODE = "wrong-code"
    TOO_MANY_CODES = "too-many-codes"
    USER_CODES = "user-codes"
    PASSWORD_CHANGED = "password"  # noqa: S105
    SECOND_FACTOR_RESET = "reset"
    SECOND_FACTOR_TURNED_ON = "turned-on"
    SECOND_FACTOR_TURNED_OFF = "turned-off"
    NEW_RECOVERY_CODES = "new-recovery-codes"
    PASSWORD_REMOVED = "removed"  # noqa: S105


# Most events are of the one kind that is rarely searched for.
_OF_RARER_KIND = ~models.Q(kind=AuthEventKind.SESSION_OPENED.value)


class AuthEventQuerySet(models.QuerySet["AuthEvent"]):
    def of_organisation(self, organisation: Organisation) -> "AuthEventQuerySet":
        return self.filter(organisation=organisation)

    def of_kind(self, kind: str) -> "AuthEventQuerySet":
        """Repeats the partial index's condition, without which SQLite does not use the index."""
        rows = self.filter(kind=kind)
        return rows if kind == AuthEventKind.SESSION_OPENED else rows.filter(_OF_RARER_KIND)

    def between(self, since: datetime | None, until: datetime | None) -> "AuthEventQuerySet":
        """From one time on, and before another; found by the ids, which are in order of time."""
        rows = self
        if since is not None:
            rows = rows.filter(ids.since("at", since))
        if until is not None:
            rows = rows.filter(pk__lt=ids.first_id_at(until), at__lt=until)
        return rows

    def naming_the_actor(self) -> "AuthEventQuerySet":
        """Without events whose actor the organisation of the event may not know."""
        return self.exclude(actor_kind__in=HIDDEN_ACTORS)

    def sign_ins(self) -> "AuthEventQuerySet":
        """Successful logins of programs, devices and administrators."""
        return self.filter(kind__in=[AuthEventKind.SESSION_OPENED, AuthEventKind.ADMIN_LOGIN])


class AppendOnlyError(Exception):
    """Raised when an existing event would be changed or deleted."""


class AuthEvent(models.Model):
    """An entry of the audit log: what happened to a credential or account. Holds no secret.

    Append-only: rows are removed only when they are old.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField(auto_now_add=True, help_text="When it happened.")
    kind = models.CharField(max_length=30, choices=event_kinds, help_text="What happened.")
    reason = models.CharField(
        max_length=MAX_REASON_LENGTH,
        blank=True,
        help_text="Details, such as why a login was refused.",
    )
    organisation = models.ForeignKey(
        Organisation, null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    email = models.CharField(
        "e-mail", max_length=MAX_LENGTH, blank=True, help_text="The e-mail address concerned."
    )
    credential = models.CharField(
        max_length=60, blank=True, help_text="Public id of the key, device, session or hook."
    )
    client_address = models.GenericIPAddressField(null=True, help_text="Client address.")
    user_agent = models.CharField(
        max_length=300, blank=True, help_text="User-Agent header of the request."
    )
    request_id = models.CharField(
        max_length=32, blank=True, help_text="Id of the request, also in the log."
    )

    written_in = CommitNumber(
        default=THIS_COMMIT, editable=False, help_text="The transaction that wrote it."
    )

    # Null where a flow is called without an actor, and for events without a subject.
    actor_kind = models.CharField(  # noqa: DJ001
        max_length=20, null=True, choices=ActorKind.choices, help_text="The kind of the actor."
    )
    actor_id = models.CharField(  # noqa: DJ001
        max_length=60, null=True, help_text="Id of the user, public id of the key, or command."
    )
    actor_label = models.CharField(  # noqa: DJ001
        max_length=254,
        null=True,
        help_text="The actor's name at that time, as far as the organisation may know it.",
    )
    subject_kind = models.CharField(  # noqa: DJ001
        max_length=20, null=True, choices=subject_kinds, help_text="The kind of the subject."
    )
    subject_id = models.CharField(  # noqa: DJ001
        max_length=60, null=True, help_text="Id of what the event is about."
    )
    subject_label = models.CharField(  # noqa: DJ001
        max_length=254, null=True, help_text="The subject's name at that time."
    )

    objects = AuthEventQuerySet.as_manager()

    class Meta:
        verbose_name, verbose_name_plural = "audit log entry", "audit log entries"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["organisation", "-id"], name="event_of_organisation"),
            models.Index(fields=["organisation", "written_in", "id"], name="event_written"),
            models.Index(fields=["written_in"], name="event_written_last"),
            # Partial, so that events of the most frequent kind do not pay for it.
            models.Index(
                fields=["organisation", "kind", "-id"],
                condition=_OF_RARER_KIND,
                name="event_of_rarer_kind",
            ),
            # Without it SQLite reads all events of the organisation to find those of one user.
            models.Index(
                fields=["organisation", "user", "-id"],
                condition=models.Q(user__isnull=False),
                name="event_of_user",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}, {self.at:%Y-%m-%d %H:%M:%S} UTC"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise AppendOnlyError
