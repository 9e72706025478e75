"""Alerts: what is told to an organisation by a program of its own.

The flows that decide that something is told call ``alert``, beside the e-mails that tell the same.
What tells it belongs to an app above, which registers at start. So do the kinds of what happens
there; their values are part of the interface.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import TextChoices
from django.utils import timezone


class AccountAlert(TextChoices):
    API_KEY_EXPIRING = "api_key.expiring", "An API key expires"


class Alert(NamedTuple):
    kind: TextChoices
    subject: Any
    """A row of the organisation that is told."""
    data: dict[str, Any]
    at: datetime


_senders: list[Callable[[Alert], bool]] = []


def register_alert_sender(send: Callable[[Alert], bool]) -> None:
    """Registers what tells an alert, and returns whether it does."""
    _senders.append(send)


def alert(kind: TextChoices, subject: Any, **data: Any) -> bool:
    """Tells the organisation of its row ``subject``, in the caller's transaction.

    Returns whether it is told: not where it has asked for no alerts, and not twice of the same kind
    and row in 15 minutes.
    """
    told = Alert(kind, subject, data, timezone.now())
    return any(send(told) for send in _senders)
