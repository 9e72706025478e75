"""Runs in GraphQL: how they end, which ones a list shows, and those that belong to other runs."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import graphene
from django.db.models import Prefetch, prefetch_related_objects
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation, find_even_deleted, scoped
from accounts.graphql.shared import enum_value
from core.database.ids import parse_uuid
from core.graphql.enums import described_enum
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_peers, as_utc, id_of, malformed_id, peers_of
from scripts_engine.callers import is_caller_of
from scripts_engine.models import Run, RunStatus, Script

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


RunStatusEnum = described_enum(
    "RunStatus",
    "How a run ended, or that it has not.",
    {
        RunStatus.SUCCEEDED: "The script returned a reply.",
        RunStatus.FAILED: "The script raised an error, or its reply was not valid.",
        RunStatus.TIMED_OUT: "The script exceeded its time limit.",
        RunStatus.OUT_OF_MEMORY: "The script exceeded its memory limit.",
        RunStatus.QUEUED: "The run waits in the queue.",
        RunStatus.RUNNING: "A queued run that is running now.",
        RunStatus.LOST: "The server ended during the run, or lost the database.",
        RunStatus.CANCELLED: "The run was taken out of the queue before it started.",
    },
)


def run_filter_arguments() -> dict[str, graphene.Scalar]:
    """The arguments of ``filtered``, for a list and for an input object."""
    return {
        "script": graphene.ID(description="Only runs of this script."),
        "hook": graphene.ID(description="Only runs by this hook."),
        "status": RunStatusEnum(description="Only runs with this status."),
        "dead_letter": graphene.Boolean(
            description="Only dead letters, or with false only other runs."
        ),
        "since": graphene.DateTime(
            description="Only runs that started at this time or later. A run that waited in the "
            "queue for over a minute is found by the time at which it was queued."
        ),
        "until": graphene.DateTime(description="Only runs that started before this time."),
    }


# Built of the same arguments, so that what a list shows is what is replayed.
RunFilter: type[graphene.InputObjectType] = type(
    "RunFilter",
    (graphene.InputObjectType,),
    {
        **run_filter_arguments(),
        "Meta": type("Meta", (), {"description": "Runs, as the arguments of `runs` select them."}),
    },
)


def filtered(
    info: GraphQLResolveInfo,
    rows: Any,
    *,
    script: str | None = None,
    hook: str | None = None,
    status: Enum | None = None,
    dead_letter: bool | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Any:
    """Raises NOT_FOUND for ids that are not the caller's."""
    if script is not None:
        rows = rows.filter(script=find_even_deleted(info, Script, script))
    if hook is not None:
        rows = rows.filter(hook_id=_caller_id(info, hook))
    if (ended_as := enum_value(status)) is not None:
        rows = rows.ended_as(ended_as)
    if dead_letter is not None:
        rows = rows.dead_letters() if dead_letter else rows.exclude(is_dead_letter=True)
    return rows.started_between(
        None if since is None else as_utc(since, "since"),
        None if until is None else as_utc(until, "until"),
    )


def _caller_id(info: GraphQLResolveInfo, caller: str) -> uuid.UUID:
    caller_id = parse_uuid(caller)
    if caller_id is None:
        raise malformed_id("hook")
    if not is_caller_of(caller_id, caller_organisation(info)):
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return caller_id


def attempts_of(info: GraphQLResolveInfo, first_run: str) -> list[uuid.UUID]:
    """The ids of all attempts, even if the first one was deleted. Raises NOT_FOUND without any.

    Found apart from the list, each by its index: an alternative in one query would cost the scan of
    the organisation's runs.
    """
    first_run_id = id_of(Run, first_run)
    runs = scoped(info, Run).order_by().values_list("pk", flat=True)
    found = [*runs.filter(pk=first_run_id), *runs.filter(first_run=first_run_id)]
    if not found:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return found


def runs_to_list(info: GraphQLResolveInfo) -> Any:
    """The caller's runs without their long columns, with the rows that runs show."""
    rows = scoped(info, Run).select_related("script__current_version", "script_version")
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
