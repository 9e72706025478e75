"""What came of a hook's calls: the newest of each kind, and how many in 24 hours."""

from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils import timezone

from core.admin.bars import Bars, bars_of
from core.admin.links import page_of
from core.admin.times import ago, exact
from hooks.flows.refused_calls import explain
from hooks.flows.stored_notes import KEPT_REFUSED_CALLS
from hooks.models import AnsweredHandshake, Hook, RefusedCall
from scripts_engine.models import Run, RunStatus
from scripts_engine.recent_runs import Hour, runs_by_hour

SHOWN = timedelta(hours=24)


class NewestCall(NamedTuple):
    """The newest call of one kind."""

    state: str
    """waiting, verified, called (without a sender), failed, answered or refused"""
    text: str
    ago: str = ""
    address: str = ""
    link: str = ""


def newest_calls(hook: Hook) -> list[NewestCall]:
    """The newest call of each kind that came, the accepted one first: a refused or failed call does
    not hide that others are verified.
    """
    runs = Run.objects.filter(hook_id=hook.pk).counted().order_by("-id")
    accepted = runs.filter(verified__isnull=False) if hook.sender else runs
    calls = [
        _of_run(accepted.first(), "verified" if hook.sender else "called"),
        _of_run(runs.failed().first(), "failed"),
        _of_handshake(hook.handshakes.first()),
        _of_refused(RefusedCall.objects.filter(hook=hook).select_related("hook__script").first()),
    ]
    found = [call for call in calls if call is not None]
    return found or [NewestCall("waiting", "Waiting for the first call.")]


def _of_run(run: Run | None, state: str) -> NewestCall | None:
    if run is None:
        return None
    at, place = exact(run.started_at), run.client_address or "nowhere"
    text = f"{state.capitalize()} at {at}, from {place}."
    return NewestCall(state, text, ago(run.started_at), page_of(run), "Show the run")


def _of_handshake(handshake: AnsweredHandshake | None) -> NewestCall | None:
    if handshake is None:
        return None
    text = f"The handshake was answered at {exact(handshake.at)}."
    return NewestCall("answered", text, ago(handshake.at))


def _of_refused(call: RefusedCall | None) -> NewestCall | None:
    if call is None:
        return None
    hints = explain(call)
    reason = hints[0].sentence if hints else ""
    text = f"Refused at {exact(call.at)}. {reason}"
    return NewestCall("refused", text, ago(call.at), page_of(call), "Show the refused call")


# --- In 24 hours ----------------------------------------------------------------------------------


class Day(NamedTuple):
    accepted: int
    failed: int
    refused: int
    is_refused_cut: bool
    """Whether more calls may have been refused than are kept."""
    bars: Bars
    """Of each clock hour."""

    @property
    def refused_in_words(self) -> str:
        return f"{self.refused}{' or more' if self.is_refused_cut else ''}"


def day_of(hook: Hook) -> Day:
    """Counts runs on indexes alone, and the refused calls kept."""
    now = timezone.now()
    hours = runs_by_hour(Run.objects.filter(hook_id=hook.pk), now - SHOWN, now)
    kept = RefusedCall.objects.filter(hook=hook).values_list("at", flat=True)
    refused = [at for at in kept if now - SHOWN <= at < now]
    by_hour = Counter(_hour_of(at, hours) for at in refused)
    counts = [_counts(hour, by_hour[number]) for number, hour in enumerate(hours)]
    return Day(
        accepted=sum(hour.total for hour in hours),
        failed=sum(each["failed"] for each in counts),
        refused=len(refused),
        is_refused_cut=len(refused) >= KEPT_REFUSED_CALLS,
        bars=bars_of(counts),
    )


def _hour_of(moment: datetime, hours: list[Hour]) -> int:
    return next(number for number, hour in enumerate(hours) if moment < hour.until)


def _counts(hour: Hour, refused: int) -> dict[str, int]:
    failed = sum(count for status, count in hour.counts.items() if status != RunStatus.SUCCEEDED)
    return {"accepted": max(0, hour.total - failed), "failed": failed, "refused": refused}
