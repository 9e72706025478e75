"""Alerts: what an organisation's alert script is told of.

The flows that decide that something is told call ``alert``, beside the e-mails that tell the same.
What runs the script belongs to an app above, which registers at start.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import TextChoices
from django.utils import timezone


class AlertKind(TextChoices):
    """The values are part of the interface."""

    SCRIPT_FAILING = "script.failing", "A script fails"
    SCRIPT_RECOVERED = "script.recovered", "A script works again"
    DEAD_LETTER = "dead_letter", "A queued run has failed for good"
    SCHEDULE_MISSED = "schedule.missed", "A schedule has missed ticks"
    API_KEY_EXPIRING = "api_key.expiring", "An API key expires"
    RELEASE_PUBLISHED = "release.published", "A release was published"


class Alert(NamedTuple):
    kind: AlertKind
    subject: Any
    """A row of the organisation that is told."""
    data: dict[str, Any]
    at: datetime


_senders: list[Callable[[Alert], bool]] = []


def register_alert_sender(send: Callable[[Alert], bool]) -> None:
    """Registers what tells the alert script, and returns whether it does."""
    _senders.append(send)


def alert(kind: AlertKind, subject: Any, **data: Any) -> bool:
    """Tells the organisation's alert script of its row ``subject``, in the caller's transaction.

    Returns whether it is told: not without such a script, and not twice of the same kind and row in
    15 minutes.
    """
    told = Alert(kind, subject, data, timezone.now())
    return any(send(told) for send in _senders)
