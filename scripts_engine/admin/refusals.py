"""Refused calls of a hook in a picture: how many a day, and for which reasons."""

from collections import Counter
from datetime import date, timedelta
from typing import NamedTuple
from uuid import UUID

from django.utils import timezone

from scripts_engine.models import RefusalCount
from scripts_engine.senders import RefusalReason

REASONS = {
    RefusalReason.WRONG_TOKEN.value: "Wrong token",
    RefusalReason.NETWORK_NOT_ALLOWED.value: "Network not allowed",
    RefusalReason.METHOD_NOT_ALLOWED.value: "Method not allowed",
    RefusalReason.BODY_TOO_LARGE.value: "Body too large",
    RefusalReason.NO_SECRET_SET.value: "No secret set",
    RefusalReason.SIGNATURE_MISSING.value: "Signature missing",
    RefusalReason.SIGNATURE_MALFORMED.value: "Signature malformed",
    RefusalReason.SIGNATURE_MISMATCH.value: "Signature does not match",
    RefusalReason.TIMESTAMP_TOO_OLD.value: "Signed time too old",
    RefusalReason.TIMESTAMP_TOO_NEW.value: "Signed time too new",
    RefusalReason.HANDSHAKE_REFUSED.value: "Handshake refused",
    RefusalReason.RATE_LIMITED.value: "Too many calls",
    RefusalReason.BUSY.value: "Busy",
    RefusalReason.QUEUE_FULL.value: "Queue full",
}
DAYS = 30
# Of the picture, in its own units.
BAR_WIDTH, HEIGHT = 8, 40
_LOWEST_BAR = 3


class Bar(NamedTuple):
    x: int
    y: int
    height: int
    title: str


class Refusals(NamedTuple):
    total: int
    bars: list[Bar]
    """One a day, the oldest first; a day without refusals has none."""
    reasons: list[tuple[str, int]]
    """In words, the most frequent first."""
    width: int = DAYS * BAR_WIDTH
    height: int = HEIGHT


def refusals_of(subject: UUID) -> Refusals:
    """The refused calls of a hook, or those of a script whose token no hook has, in 30 days."""
    first = timezone.now().date() - timedelta(days=DAYS - 1)
    rows = RefusalCount.objects.filter(subject=subject, day__gte=first)
    by_day: Counter[date] = Counter()
    by_reason: Counter[str] = Counter()
    for day, reason, count in rows.values_list("day", "reason", "count"):
        by_day[day] += count
        by_reason[REASONS[reason]] += count
    most = max(by_day.values(), default=0)
    bars = [_bar(day, (day - first).days, count, most) for day, count in sorted(by_day.items())]
    return Refusals(by_day.total(), bars, by_reason.most_common())


def _bar(day: date, number: int, count: int, most: int) -> Bar:
    height = max(_LOWEST_BAR, round(HEIGHT * count / most))
    return Bar(number * BAR_WIDTH, HEIGHT - height, height, f"{day}: {count:,}")
