"""Takes due runs out of the queue, for a time: the lease.

Fair between organisations: next is the one with the fewest leases on all nodes, then the one that
this node served longest ago. A runner takes no more than it can start at once, so an organisation
with a thousand waiting runs delays another's next run by one run's time at most.

Claims walk the due runs of an organisation. Where many of them cannot start, because their script
is paused or at its limit, that walk would delay everybody: then the first run of each script with
waiting runs is looked up instead.
"""

import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, reduce
from heapq import heapify, heapreplace
from operator import or_
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery, UUIDField
from django.db.models.expressions import RawSQL
from django.utils import timezone

from accounts.models import Organisation
from core.database.compiled_query import (
    CompiledQuery,
    CompiledUpdate,
    Parameter,
    column_value,
    parameters,
    rows_of,
)
from core.database.ids import as_uuid, first_id_at
from jobs.concurrent_runs import ConcurrencyLimits, is_hook_at_limit, take_lease
from jobs.models import PausedQueue, QueueEntry, RunLimits
from scripts_engine.models import Run, RunStatus, Script

# A lease lasts this much longer than the script may run.
LEASE_MARGIN = timedelta(seconds=15)

# The organisations with waiting runs, each found by one look into the index, however many wait.
_WAITING_ORGANISATIONS = """
    WITH RECURSIVE waiting(organisation_id) AS (
        SELECT (SELECT organisation_id FROM {entries} WHERE lease_id IS NULL
                ORDER BY organisation_id LIMIT 1)
        UNION ALL
        SELECT (SELECT organisation_id FROM {entries}
                WHERE lease_id IS NULL AND organisation_id > waiting.organisation_id
                ORDER BY organisation_id LIMIT 1)
        FROM waiting WHERE waiting.organisation_id IS NOT NULL
    )
"""
# The scripts of an organisation with due runs that may start, found in the same way, however many
# scripts it has. Each with when the first of its runs is due.
_READY_SCRIPTS = """
    WITH RECURSIVE with_runs(script_id) AS (
        SELECT (SELECT script_id FROM {entries}
                WHERE lease_id IS NULL AND organisation_id = {organisation}
                ORDER BY script_id LIMIT 1)
        UNION ALL
        SELECT (SELECT script_id FROM {entries}
                WHERE lease_id IS NULL AND organisation_id = {organisation}
                    AND script_id > with_runs.script_id
                ORDER BY script_id LIMIT 1)
        FROM with_runs WHERE with_runs.script_id IS NOT NULL
    )
    SELECT script.id, first_of_script.due_at
    FROM with_runs
        JOIN {scripts} AS script ON script.id = with_runs.script_id
        JOIN {entries} AS first_of_script ON first_of_script.run_id = (
            SELECT run_id FROM {entries}
            WHERE lease_id IS NULL AND organisation_id = {organisation}
                AND script_id = with_runs.script_id
            ORDER BY due_at, run_id LIMIT 1
        )
    WHERE {is_ready} AND first_of_script.due_at <= %(now)s
"""
_PARTS = {
    # Each with the run that is due first, and its script.
    "first_of_each": """waiting
        JOIN {organisations} AS organisation ON organisation.id = waiting.organisation_id
        JOIN {entries} AS first ON first.run_id = (
            SELECT run_id FROM {entries}
            WHERE lease_id IS NULL AND organisation_id = waiting.organisation_id
            ORDER BY due_at, run_id LIMIT 1
        )
        JOIN {scripts} AS script ON script.id = first.script_id""",
    "is_open": """organisation.is_active AND NOT EXISTS (
        SELECT 1 FROM {paused} AS paused
        WHERE paused.organisation_id = waiting.organisation_id)""",
    "is_ready": """script.is_enabled AND script.current_version_id IS NOT NULL
        AND script.queue_paused_at IS NULL AND script.deleted_at IS NULL""",
}
_ORGANISATIONS = """
    SELECT waiting.organisation_id, first.due_at, {is_ready}, COALESCE(leased.number, 0)
    FROM {first_of_each}
        LEFT JOIN (
            SELECT organisation_id, count(*) AS number FROM {entries}
            WHERE lease_id IS NOT NULL GROUP BY organisation_id
        ) AS leased ON leased.organisation_id = waiting.organisation_id
    WHERE {is_open}
"""
# The ids of the first due runs of each of these organisations, so many of each, locked. Only
# PostgreSQL has LATERAL; SQLite is asked for each organisation, which costs no round trip. The
# limit is a number: of one that it does not know, the planner expects a tenth of all that waits.
_FIRST_OF_EACH = """
    WITH locked AS MATERIALIZED (
        SELECT first.run_id
        FROM unnest(%s::uuid[]) AS wanted(organisation_id)
            CROSS JOIN LATERAL (
                SELECT entry.run_id
                FROM {entries} AS entry JOIN {scripts} AS script ON script.id = entry.script_id
                WHERE entry.lease_id IS NULL AND entry.organisation_id = wanted.organisation_id
                    AND entry.due_at <= %s AND {is_ready}
                ORDER BY entry.due_at, entry.run_id LIMIT {number}
                FOR UPDATE OF entry SKIP LOCKED
            ) AS first
    )
    SELECT run_id FROM locked
"""

_ORGANISATION = Parameter("organisation", UUIDField())
_NOW = Parameter("now", QueueEntry._meta.get_field("due_at"))

_lease = CompiledUpdate(QueueEntry, ("lease_id", "lease_ends_at"))
_start = CompiledUpdate(Run, ("status", "started_at", "script_version_id"))


class Claimed(NamedTuple):
    """A run that this process has for the length of its lease."""

    run_id: uuid.UUID
    lease_id: uuid.UUID
    entry: QueueEntry
    run_lease_id: uuid.UUID | None
    """What counts it against the limits of its hook and script, if there are any."""


class Turns:
    """The order in which this process serves organisations."""

    def __init__(self) -> None:
        self._served: dict[uuid.UUID, int] = {}
        self.count = 0

    def serve(self, organisation_id: uuid.UUID) -> None:
        self.count += 1
        self._served[organisation_id] = self.count

    def last_served(self, organisation_id: uuid.UUID) -> int:
        return self._served.get(organisation_id, 0)

    def forget_all_but(self, organisation_ids: Sequence[uuid.UUID]) -> None:
        if len(self._served) > 2 * len(organisation_ids) + 1000:
            self._served = {
                each: self._served[each] for each in organisation_ids if each in self._served
            }


class Round(NamedTuple):
    claimed: list[Claimed]
    next_due_at: datetime | None
    """When the next waiting run is due, if that is later than now."""


class _Waiting(NamedTuple):
    """An organisation with waiting runs, by the one that is due first."""

    organisation_id: uuid.UUID
    due_at: datetime
    can_run: bool
    """Unless a limit holds it back."""
    leases: int
    """How many of its runs are in progress on all nodes."""


class _AtLimit(NamedTuple):
    """What may have no more runs now: a hook, or else a script with all its hooks."""

    script_id: uuid.UUID
    hook_id: uuid.UUID | None


def claim_due_runs(number: int, turns: Turns) -> Round:
    """Takes at most that many due runs, in the caller's transaction or one of its own."""
    claimed: list[Claimed] = []
    with transaction.atomic(savepoint=False):
        now = timezone.now()
        waiting = _waiting_organisations()
        turns.forget_all_but([each.organisation_id for each in waiting])
        due = {each.organisation_id: each for each in waiting if each.due_at <= now}
        later = [each.due_at for each in waiting if each.due_at > now]
        at_limit: dict[uuid.UUID, list[_AtLimit]] = defaultdict(list)
        while due and len(claimed) < number:
            claimed += _claim_in_turn(due, number - len(claimed), turns, at_limit, now)
    return Round(claimed, min(later, default=None))


def _claim_in_turn(
    due: dict[uuid.UUID, _Waiting],
    number: int,
    turns: Turns,
    at_limit: dict[uuid.UUID, list[_AtLimit]],
    now: datetime,
) -> list[Claimed]:
    """Claims runs in the order of the organisations' turns, until a limit changes that order.

    Removes an organisation from ``due`` if all that is due there waits for something else than a
    slot. Claims something, removes one, or adds to ``at_limit``.
    """
    order = _next_turns(due, number, turns)
    wanted = Counter(order)
    batches = _due_runs([(due[each], wanted[each]) for each in wanted], at_limit, now)
    known = {each: len(at_limit[each]) for each in wanted}
    taken: list[tuple[QueueEntry, uuid.UUID | None]] = []
    for chosen in order:
        found = _first_within_limits(batches[chosen], at_limit[chosen])
        if found is not None:
            taken.append(found)
            due[chosen] = due[chosen]._replace(leases=due[chosen].leases + 1)
            turns.serve(chosen)
        elif len(at_limit[chosen]) > known[chosen]:
            # Behind those at a limit there may be more.
            break
        else:
            due.pop(chosen, None)
    return _take(taken, now)


def _first_within_limits(
    batch: deque[QueueEntry], at_limit: list[_AtLimit]
) -> tuple[QueueEntry, uuid.UUID | None] | None:
    """The first run that may start, and its lease if it is counted. Notes what is at a limit."""
    while batch:
        entry = batch.popleft()
        if any(_is_of(entry, *each) for each in at_limit):
            continue
        run_lease_id, excluded = _counted(entry)
        if excluded is None:
            return entry, run_lease_id
        at_limit.append(excluded)
    return None


def _next_turns(due: dict[uuid.UUID, _Waiting], number: int, turns: Turns) -> list[uuid.UUID]:
    """Whose runs are next, if each has enough of them."""
    places = [
        (each.leases, turns.last_served(each.organisation_id), each.due_at, each.organisation_id)
        for each in due.values()
    ]
    heapify(places)
    order = []
    for served in range(turns.count + 1, turns.count + number + 1):
        leases, _, due_at, chosen = places[0]
        order.append(chosen)
        heapreplace(places, (leases + 1, served, due_at, chosen))
    return order


def _waiting_organisations() -> list[_Waiting]:
    return [
        _Waiting(as_uuid(organisation_id), moment_of(due_at), bool(can_run), leases)
        for organisation_id, due_at, can_run, leases in rows_of(
            statement_of_waiting(_ORGANISATIONS)
        )
    ]


def moment_of(value: Any) -> datetime:
    """SQLite stores times as text in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _due_runs(
    wanted: Sequence[tuple[_Waiting, int]],
    at_limit: Mapping[uuid.UUID, Sequence[_AtLimit]],
    now: datetime,
) -> dict[uuid.UUID, deque[QueueEntry]]:
    """The runs that are due first, at most so many of each organisation."""
    found: dict[uuid.UUID, deque[QueueEntry]] = {
        each.organisation_id: deque() for each, _ in wanted
    }
    walked = []
    for each, number in wanted:
        limits = at_limit.get(each.organisation_id, ())
        if each.can_run and not limits:
            walked.append((each.organisation_id, number))
        else:
            found[each.organisation_id] += _due_by_script(each.organisation_id, number, now, limits)
    if not walked:
        return found
    for entry in _first_due(walked, now):
        found[entry.organisation_id].append(entry)
    return found


def _first_due(wanted: Sequence[tuple[uuid.UUID, int]], now: datetime) -> list[QueueEntry]:
    if connection.vendor == "postgresql":
        by_number = defaultdict(list)
        for organisation, number in wanted:
            by_number[number].append(organisation)
        # Turns differ by one at most between organisations with as many leases.
        return [
            entry
            for number, organisations in by_number.items()
            for entry in _first_of_each_query(number).all(
                organisations=organisations,
                now=now,
            )
        ]
    return [
        entry
        for organisation, number in wanted
        for entry in _due_query(number).all(organisation=organisation, now=now)
    ]


@cache
def _first_of_each_query(number: int) -> CompiledQuery:
    statement = _FIRST_OF_EACH.format(number=number, is_ready=_PARTS["is_ready"], **_tables())
    # A field of single values: the driver takes lists of these as arrays.
    values = [Parameter("organisations", UUIDField()), _NOW]
    chosen = RawSQL(statement, values)  # noqa: S611  (names from the models, values bound)
    return CompiledQuery(_due().filter(pk__in=chosen))


@cache
def _due_query(number: int) -> CompiledQuery:
    return CompiledQuery(_due().filter(organisation=_ORGANISATION)[:number])


@cache
def _chosen_query(number: int) -> CompiledQuery:
    chosen = [Q(pk=each) for each in parameters("run_ids", UUIDField(), number)]
    return CompiledQuery(_due().filter(reduce(or_, chosen)))


def _due() -> QuerySet[QueueEntry]:
    """Everything that running them needs, in the order in which they are due."""
    due = QueueEntry.objects.waiting().filter(
        due_at__lte=_NOW,
        script__is_enabled=True,
        script__current_version__isnull=False,
        script__queue_paused_at__isnull=True,
        script__deleted_at__isnull=True,
    )
    due = due.select_related("run", "script")
    limits = RunLimits.objects.filter(pk=OuterRef("hook_id")).order_by()
    due = due.annotate(
        max_of_hook=Subquery(limits.values("max_concurrent_runs")),
        pinned_version=Subquery(limits.values("version_id")),
    )
    locked = due.select_for_update(skip_locked=True, of=("self",))
    return locked.order_by("due_at", "run_id")


def _due_by_script(
    organisation_id: uuid.UUID, number: int, now: datetime, at_limit: Sequence[_AtLimit]
) -> list[QueueEntry]:
    """The same, one look for each script however many of its runs wait; see the module."""
    whole = {each.script_id for each in at_limit if each.hook_id is None}
    hooks = [each.hook_id for each in at_limit if each.hook_id is not None]
    # Of some scripts, all that is due may be at a limit.
    found: list[tuple[datetime, uuid.UUID]] = []
    for script_id in _ready_scripts(organisation_id, number + len(at_limit), now):
        if script_id not in whole:
            found += _due_of_script(script_id, number, now, hooks)
    chosen = [run_id for _, run_id in sorted(found)[:number]]
    if not chosen:
        return []
    query = _chosen_query(len(chosen))
    rows: list[QueueEntry] = query.all(now=now, run_ids=chosen)
    return rows


def _ready_scripts(organisation_id: uuid.UUID, number: int, now: datetime) -> list[uuid.UUID]:
    """Those that have waited longest."""
    values = {
        "organisation": column_value(QueueEntry, "organisation", organisation_id),
        "now": column_value(QueueEntry, "due_at", now),
        "number": number,
    }
    statement = _ready_scripts_statement() + " ORDER BY first_of_script.due_at LIMIT %(number)s"
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [as_uuid(script_id) for script_id, _ in cursor.fetchall()]


def _due_of_script(
    script_id: uuid.UUID, number: int, now: datetime, hooks_at_limit: Sequence[uuid.UUID]
) -> list[tuple[datetime, uuid.UUID]]:
    """When runs of the script are due, and their ids; locked."""
    if not hooks_at_limit:
        rows: list[tuple[datetime, uuid.UUID]] = _script_query(number).all(
            script=script_id, now=now
        )
        return rows
    others = _locked_of_script(script_id, now).exclude(hook_id__in=hooks_at_limit)
    return list(others.values_list("due_at", "pk")[:number])


@cache
def _script_query(number: int) -> CompiledQuery:
    due = _locked_of_script(Parameter("script", UUIDField()), _NOW)
    return CompiledQuery(due.values_list("due_at", "pk")[:number])


def _locked_of_script(script_id: Any, now: Any) -> QuerySet[QueueEntry]:
    due = QueueEntry.objects.waiting().filter(script=script_id, due_at__lte=now)
    return due.select_for_update(skip_locked=True).order_by("due_at", "run_id")


def _is_of(entry: QueueEntry, script_id: uuid.UUID, hook_id: uuid.UUID | None) -> bool:
    return entry.script_id == script_id if hook_id is None else entry.hook_id == hook_id


def _counted(entry: QueueEntry) -> tuple[uuid.UUID | None, _AtLimit | None]:
    """A lease that counts the run, if there is a limit, and what the limit excludes if reached.

    That is the whole script wherever possible: one with a thousand hooks would otherwise take a
    thousand looks, while all organisations wait.
    """
    of_hook: int | None = entry.max_of_hook  # type: ignore[attr-defined]
    limits = ConcurrencyLimits(
        entry.hook_id, entry.script_id, of_hook, entry.script.max_concurrent_runs
    )
    if not limits.are_set:
        return None, None
    # Two runners that claim runs of the same scripts in another order would wait for each other.
    lease_id = take_lease(limits, run_seconds=entry.script.timeout_seconds, waits=False)
    if lease_id is not None:
        return lease_id, None
    hook_id = entry.hook_id if is_hook_at_limit(limits) else None
    return None, _AtLimit(entry.script_id, hook_id)


def _take(entries: Sequence[tuple[QueueEntry, uuid.UUID | None]], now: datetime) -> list[Claimed]:
    """Leases them."""
    lease_id, leases, starts = uuid.uuid4(), {}, {}
    for entry, _ in entries:
        script = entry.script
        ends_at = now + timedelta(seconds=script.timeout_seconds) + LEASE_MARGIN
        leases[entry.pk] = {"lease_id": lease_id, "lease_ends_at": ends_at}
        entry.run.status, entry.run.started_at = RunStatus.RUNNING, now
        starts[entry.pk] = {
            "status": RunStatus.RUNNING.value,
            "started_at": now,
            "script_version_id": pinned_version_of(entry) or script.current_version_id,
        }
    _lease.execute(leases)
    _start.execute(starts)
    return [Claimed(entry.pk, lease_id, entry, run_lease_id) for entry, run_lease_id in entries]


def pinned_version_of(entry: QueueEntry) -> uuid.UUID | None:
    """The version that the caller of a claimed run is pinned to."""
    version_id: uuid.UUID | None = entry.pinned_version  # type: ignore[attr-defined]
    return version_id


@cache
def statement_of_waiting(template: str) -> str:
    """A statement that begins with the organisations with waiting runs, ``waiting``.

    The template may name tables and ``_PARTS`` in braces, and ``ready_scripts`` of the organisation
    of ``waiting``.
    """
    tables = _tables()
    parts = {name: part.format(**tables) for name, part in _PARTS.items()}
    ready_scripts = _READY_SCRIPTS.format(organisation="waiting.organisation_id", **tables, **parts)
    return (_WAITING_ORGANISATIONS + template).format(
        ready_scripts=ready_scripts, **tables, **parts
    )


@cache
def _ready_scripts_statement() -> str:
    return _READY_SCRIPTS.format(
        organisation="%(organisation)s", is_ready=_PARTS["is_ready"], **_tables()
    )


def _tables() -> dict[str, str]:
    quote = connection.ops.quote_name
    return {
        "entries": quote(QueueEntry._meta.db_table),
        "scripts": quote(Script._meta.db_table),
        "paused": quote(PausedQueue._meta.db_table),
        "organisations": quote(Organisation._meta.db_table),
    }


# --- After the clock was set back -----------------------------------------------------------------

# Clocks of nodes may differ by less.
_TOLERANCE = timedelta(minutes=1)
_MOVED_AT_ONCE = 500


@transaction.atomic
def move_to_present() -> int:
    """Lets waiting runs from a later time than now count as queued now. Returns their number.

    Without it, they would wait until the clock shows the time at which they were queued.
    """
    now = timezone.now()
    waiting = QueueEntry.objects.waiting().filter(
        # By id too, which the primary key serves: usually, there is none.
        pk__gt=first_id_at(now + _TOLERANCE),
        run__started_at__gt=now + _TOLERANCE,
    )
    locked = waiting.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    entries = list(locked.select_related("run")[:_MOVED_AT_ONCE])
    for entry in entries:
        entry.due_at = now + max(entry.due_at - entry.run.started_at, timedelta(0))
    QueueEntry.objects.bulk_update(entries, ["due_at"])
    Run.objects.filter(pk__in=[entry.pk for entry in entries]).update(started_at=now)
    return len(entries)
