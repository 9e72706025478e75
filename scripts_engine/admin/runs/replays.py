"""How far many replays are that were asked for at once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest

from accounts.admin.reach import person
from core.admin.links import list_of
from core.database.ids import parse_uuid
from scripts_engine.flows.queue.steer import MAX_REPLAYS
from scripts_engine.models import QueueEntry, Run, RunStatus, Trigger
from scripts_engine.models.queue_entry import QueueEntryQuerySet
from scripts_engine.models.run import FAILURES, RunQuerySet

_PARAMETERS = {"first", "last"}


class Part(NamedTuple):
    """One kind of end in the picture, in replays from its left edge."""

    kind: str
    start: int
    width: int


class Progress(NamedTuple):
    """Of how many replays, how many have ended how."""

    total: int
    succeeded: int
    failed: int
    """For good: no attempt follows."""
    cancelled: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.cancelled

    @property
    def parts(self) -> list[Part]:
        """From left to right, each where the one before it ends."""
        return [
            Part("succeeded", 0, self.succeeded),
            Part("failed", self.succeeded, self.failed),
            Part("cancelled", self.succeeded + self.failed, self.cancelled),
        ]

    @property
    def text(self) -> str:
        parts = [
            f"{number:,} {what}"
            for number, what in (
                (self.succeeded, "succeeded"),
                (self.failed, "failed for good"),
                (self.cancelled, "cancelled"),
                (self.total - self.ended, "to go"),
            )
            if number
        ]
        return f"{self.total:,} replays: {', '.join(parts)}."


def page_of_replays(run_ids: Sequence[UUID], page: str = "replays") -> str:
    """The address of the page that watches these replays, queued by one person in this order."""
    return list_of(Run, page, first=run_ids[0], last=run_ids[-1])


def replays_of(request: HttpRequest, visible: RunQuerySet) -> RunQuerySet:
    """The person's replays in the range that the address names.

    Raises ``Http404`` if it names none of the visible runs.
    """
    if set(request.GET) != _PARAMETERS:
        raise Http404
    first, last = parse_uuid(request.GET["first"]), parse_uuid(request.GET["last"])
    if first is None or last is None:
        raise Http404
    replays = visible.triggered_by(Trigger.REPLAY).filter(
        pk__gte=first, pk__lte=last, first_run__isnull=True, started_by=person(request)
    )
    if not replays.exists():
        raise Http404
    return replays.order_by("pk")


def progress_of(replays: RunQuerySet) -> Progress:
    """How the newest attempt at each of them ended."""
    found = replays.values_list("pk", "status", "is_dead_letter")[:MAX_REPLAYS]
    newest = {run_id: (status, is_dead) for run_id, status, is_dead in found}
    failed = [run_id for run_id, (status, _) in newest.items() if status in FAILURES]
    later = Run.objects.later_attempts_of(failed).order_by("attempt", "pk")
    for run in later.only("first_run", "status", "is_dead_letter"):
        newest[run.first_attempt_id] = run.status, run.is_dead_letter
    return _counted(newest.values())


def entries_of(replays: RunQuerySet) -> QueueEntryQuerySet:
    """What waits of them, first attempts and later ones."""
    run_ids = list(replays.values_list("pk", flat=True)[:MAX_REPLAYS])
    return QueueEntry.objects.waiting().filter(payload_of__in=run_ids)


def what_was_cancelled(cancelled: int, others: int) -> tuple[str, int]:
    """A message and its level."""
    more = f" {others:,} had started or ended." if others else ""
    return f"Cancelled {cancelled:,} runs.{more}", messages.WARNING if others else messages.SUCCESS


def _counted(newest: Iterable[tuple[str, bool | None]]) -> Progress:
    statuses: Counter[str] = Counter()
    for status, is_dead_letter in newest:
        # A failed attempt that is followed by another was never a dead letter.
        is_followed = status in FAILURES and is_dead_letter is None
        statuses[RunStatus.QUEUED if is_followed else status] += 1
    return Progress(
        total=statuses.total(),
        succeeded=statuses[RunStatus.SUCCEEDED],
        failed=sum(statuses[status] for status in FAILURES),
        cancelled=statuses[RunStatus.CANCELLED],
    )
