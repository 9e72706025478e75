"""Runs that belong to other runs, loaded for a whole page with one query.

Other tenants' runs, and those that were deleted meanwhile, are as if there were none.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, prefetch_related_objects
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import scoped
from core.graphql.peers import as_peers, peers_of
from scripts_engine.models import QueueEntry, Run, RunStatus

# Loaded per run, only if the document selects them, because a page of runs would be large.
_LONG_COLUMNS = (
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "host_calls",
    "unsaved_source",
)
_PUSHED = "pushed_first_attempts"


def runs_to_list(info: GraphQLResolveInfo) -> Any:
    """The caller's runs without their long columns, with the rows that runs show."""
    rows = scoped(info, Run).select_related("script__current_version", "script_version", "hook")
    return rows.defer(*_LONG_COLUMNS)


def related_run(run: Run, info: GraphQLResolveInfo, name: str) -> Run | None:
    """The run to which the foreign key of that name refers."""
    if getattr(run, f"{name}_id") is None:
        return None
    if name not in run._state.fields_cache:
        peers = peers_of(run)
        prefetch_related_objects(peers, Prefetch(name, runs_to_list(info)))
        found = {each.pk: each for peer in peers if (each := getattr(peer, name)) is not None}
        as_peers(found.values())
    related: Run | None = getattr(run, name)
    return related


def run_with_payload(run: Run, info: GraphQLResolveInfo) -> Run | None:
    """The first attempt; ``None`` if it was deleted."""
    return run if run.first_run_id is None else related_run(run, info, "first_run")


def pushed_runs(run: Run, info: GraphQLResolveInfo) -> Sequence[Run]:
    """First attempts of what the run pushed, in that order. A run pushes few."""
    if not hasattr(run, _PUSHED):
        peers = peers_of(run)
        rows = runs_to_list(info).pushed_by_any([peer.pk for peer in peers]).order_by("id")
        prefetch_related_objects(peers, Prefetch("pushed_runs", rows, to_attr=_PUSHED))
        as_peers(pushed for peer in peers for pushed in getattr(peer, _PUSHED))
    pushed: Sequence[Run] = getattr(run, _PUSHED)
    return pushed


def due_at(run: Run, info: GraphQLResolveInfo) -> datetime | None:
    """When a queued run may start; ``None`` for others."""
    if run.status != RunStatus.QUEUED:
        return None
    queued = [peer for peer in peers_of(run) if peer.status == RunStatus.QUEUED]
    entries = scoped(info, QueueEntry).only("run", "due_at")
    prefetch_related_objects(queued, Prefetch("queue_entry", entries))
    entry: QueueEntry | None = getattr(run, "queue_entry", None)
    return None if entry is None else entry.due_at
