"""Takes due runs out of the queue, for a time: the lease.

Fair between organisations: next is the one with the fewest leases on all nodes, then the one that
this node served longest ago. A runner takes no more than it can start at once, so an organisation
with a thousand waiting runs delays another's next run by one run's time at most.

Claims walk the due runs of an organisation. Where many of them cannot start, because their script
is paused or at its limit, that walk would delay everybody: then the first run of each script with
waiting runs is looked up instead.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, Q, QuerySet, UUIDField
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
from core.database.ids import as_uuid
from scripts_engine.flows.concurrent_runs import RunLimits, is_hook_at_limit, take_lease
from scripts_engine.models import PausedQueue, QueueEntry, Run, RunStatus, Script

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
    "is_ready": """script.is_enabled AND script.queue_paused_at IS NULL
        AND script.deleted_at IS NULL""",
}
_ORGANISATIONS = """
    SELECT waiting.organisation_id, first.due_at, {is_ready} FROM {first_of_each} WHERE {is_open}
"""

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
        self._count = 0

    def serve(self, organisation_id: uuid.UUID) -> None:
        self._count += 1
        self._served[organisation_id] = self._count

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


def claim_due_runs(number: int, turns: Turns) -> Round:
    """Takes at most that many due runs, in the caller's transaction or one of its own."""
    claimed: list[Claimed] = []
    with transaction.atomic(savepoint=False):
        now = timezone.now()
        waiting = _waiting_organisations()
        turns.forget_all_but([each.organisation_id for each in waiting])
        due = {each.organisation_id: each for each in waiting if each.due_at <= now}
        later = [each.due_at for each in waiting if each.due_at > now]
        leases = _leases_by_organisation() if len(due) > 1 else Counter()

        def place_of(each: uuid.UUID) -> tuple[int, int, datetime]:
            return leases[each], turns.last_served(each), due[each].due_at

        while due and len(claimed) < number:
            chosen = min(due, key=place_of)
            found = _claim_of(due[chosen], 1 if len(due) > 1 else number - len(claimed), now)
            if not found:
                # All that is due there waits for something else than a slot.
                del due[chosen]
                continue
            claimed += found
            leases[chosen] += len(found)
            turns.serve(chosen)
    return Round(claimed, min(later, default=None))


def _waiting_organisations() -> list[_Waiting]:
    return [
        _Waiting(as_uuid(organisation_id), moment_of(due_at), bool(can_run))
        for organisation_id, due_at, can_run in rows_of(statement_of_waiting(_ORGANISATIONS))
    ]


def moment_of(value: Any) -> datetime:
    """SQLite stores times as text in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _leases_by_organisation() -> Counter[uuid.UUID]:
    return Counter(dict(_leases_query().all()))


@cache
def _leases_query() -> CompiledQuery:
    leases = QueueEntry.objects.leased().values_list("organisation").annotate(Count("pk"))
    return CompiledQuery(leases.order_by())


class _AtLimit(NamedTuple):
    """What may have no more runs now: a hook, or else a script with all its hooks."""

    script_id: uuid.UUID
    hook_id: uuid.UUID | None


def _claim_of(waiting: _Waiting, number: int, now: datetime) -> list[Claimed]:
    """Claims due runs of the organisation, the longest due first."""
    claimed: list[Claimed] = []
    at_limit: list[_AtLimit] = []
    while len(claimed) < number:
        wanted = number - len(claimed)
        if waiting.can_run and not at_limit:
            batch = _due_query(wanted).all(organisation=waiting.organisation_id, now=now)
        else:
            batch = _due_by_script(waiting.organisation_id, wanted, now, at_limit)
        taken = []
        for entry in batch:
            if any(_is_of(entry, *each) for each in at_limit):
                continue
            run_lease_id, excluded = _counted(entry)
            if excluded is None:
                taken.append((entry, run_lease_id))
            else:
                at_limit.append(excluded)
        claimed += _take(taken, now)
        if len(batch) < wanted and len(taken) == len(batch):
            break
    return claimed


@cache
def _due_query(number: int) -> CompiledQuery:
    return CompiledQuery(_due()[:number])


@cache
def _chosen_query(number: int) -> CompiledQuery:
    chosen = [Q(pk=each) for each in parameters("run_ids", UUIDField(), number)]
    return CompiledQuery(_due().filter(reduce(or_, chosen)))


def _due() -> QuerySet[QueueEntry]:
    """Everything that running them needs, in the order in which they are due."""
    due = QueueEntry.objects.waiting().filter(
        organisation=Parameter("organisation", UUIDField()),
        due_at__lte=_NOW,
        script__is_enabled=True,
        script__queue_paused_at__isnull=True,
        script__deleted_at__isnull=True,
    )
    due = due.select_related("run", "script__current_version", "hook")
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
    rows: list[QueueEntry] = query.all(organisation=organisation_id, now=now, run_ids=chosen)
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
    others = _locked_of_script(script_id, now).exclude(hook__in=hooks_at_limit)
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
    of_hook = None if entry.hook is None else entry.hook.max_concurrent_runs
    limits = RunLimits(entry.hook_id, entry.script_id, of_hook, entry.script.max_concurrent_runs)
    if not limits.are_set:
        return None, None
    # Two runners that claim runs of the same scripts in another order would wait for each other.
    lease_id = take_lease(limits, run_seconds=entry.script.timeout_seconds, waits=False)
    if lease_id is not None:
        return lease_id, None
    hook_id = entry.hook_id if is_hook_at_limit(limits) else None
    return None, _AtLimit(entry.script_id, hook_id)


def _take(
    entries: Sequence[tuple[QueueEntry, uuid.UUID | None]], now: datetime
) -> Iterator[Claimed]:
    """Leases them, with one statement for each time limit, and one for each version."""
    lease_id = uuid.uuid4()
    by_limit, by_version = defaultdict(list), defaultdict(list)
    for entry, _ in entries:
        by_limit[entry.script.timeout_seconds].append(entry.pk)
        by_version[entry.script.current_version_id].append(entry.pk)
    for seconds, run_ids in by_limit.items():
        ends_at = now + timedelta(seconds=seconds) + LEASE_MARGIN
        _lease.execute(run_ids, {"lease_id": lease_id, "lease_ends_at": ends_at})
    for version_id, run_ids in by_version.items():
        columns = {"started_at": now, "script_version_id": version_id}
        _start.execute(run_ids, {"status": RunStatus.RUNNING.value, **columns})
    for entry, run_lease_id in entries:
        entry.run.status, entry.run.started_at = RunStatus.RUNNING, now
        yield Claimed(entry.pk, lease_id, entry, run_lease_id)


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
