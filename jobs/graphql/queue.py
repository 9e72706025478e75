"""GraphQL mutations that queue, cancel and replay runs, and pause the queue; when a run is due."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import graphene
from django.db.models import Prefetch, prefetch_related_objects
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, caller_organisation, find, scoped
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import caller_origin, extend, id_of, peers_of
from jobs.models import QueueEntry
from jobs.queue.cancel import NotQueuedError, cancel_run
from jobs.queue.enqueue import MAX_DELAY_SECONDS, MAX_KEY_CHARACTERS, request_run
from jobs.queue.pause import pause_organisation, pause_script, resume_organisation, resume_script
from jobs.queue.replay import MAX_REPLAYS, NotReplayableError, replay_runs
from scripts_engine.graphql.mutations import event_of, script_errors
from scripts_engine.graphql.runs import RunFilter, filtered
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, RunStatus, Script
from scripts_engine.runs.spec import Author


@mutation(
    RunType,
    "Queues a run of a script's current version and returns it. A key with which a run "
    "of the script was queued within 24 hours returns that run instead.",
    errors=script_errors,
    script=graphene.ID(required=True, description="The script's id."),
    body=graphene.String(default_value="", description="The payload."),
    delay_seconds=graphene.Int(
        default_value=0, description=f"The earliest start: 0 to {MAX_DELAY_SECONDS}."
    ),
    key=graphene.String(description=f"1 to {MAX_KEY_CHARACTERS} characters."),
)
def enqueue_run_field(
    info: GraphQLResolveInfo,
    script: str,
    body: str | None = "",
    delay_seconds: int | None = 0,
    key: str | None = None,
) -> Run:
    row = find(info, Script, script)
    run_id = request_run(
        row,
        event=event_of(info, body),
        author=Author(api_key=caller_key(info)),
        delay_seconds=delay_seconds or 0,
        key=key,
    )
    run: Run | None = scoped(info, Run).filter(pk=run_id).first()
    if run is None:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "The run with this key is no longer kept.")
    return run


@mutation(
    RunType,
    "Takes a queued run out of the queue. One that has started is not stopped.",
    id=graphene.ID(required=True, description="The run's id."),
)
def cancel_run_field(info: GraphQLResolveInfo, id: str) -> Run:
    run = find(info, Run, id)
    try:
        return cancel_run(run, origin=caller_origin(info))
    except NotQueuedError:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "This run does not wait in the queue.", field="id"
        ) from None


@mutation(
    graphene.Int,
    f"Queues the payloads of at most {MAX_REPLAYS} runs that have ended again, for the "
    "current versions of their scripts: all or none. Returns how many. Settles dead letters. Takes "
    "either ids or a filter, which leaves out runs of unsaved sources and of deleted scripts, and "
    "attempts that another one followed.",
    errors=script_errors,
    ids=graphene.List(graphene.NonNull(graphene.ID), description="The runs."),
    filter=RunFilter(description="Selects the runs."),
)
def replay_runs_field(
    info: GraphQLResolveInfo, ids: Sequence[str] | None = None, filter: dict[str, Any] | None = None
) -> int:
    if (ids is None) == (filter is None):
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "Give either ids or a filter.", field="ids"
        )
    runs = _runs_with(info, ids) if ids is not None else _runs_matching(info, filter or {})
    author, origin = Author(api_key=caller_key(info)), caller_origin(info)
    try:
        are_dead_letters = filter is not None and filter.get("dead_letter") is True
        return len(
            replay_runs(runs, author=author, origin=origin, are_dead_letters=are_dead_letters)
        )
    except NotReplayableError as error:
        field = "filter" if ids is None else "ids"
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, str(error), field=field) from None


def _runs_with(info: GraphQLResolveInfo, ids: Sequence[str]) -> list[Run]:
    """Raises NOT_FOUND unless all ids are of the caller's runs."""
    if len(ids) > MAX_REPLAYS:
        raise _too_many("ids")
    wanted = {id_of(Run, each) for each in ids}
    runs = list(_replayable(info).filter(pk__in=wanted))
    if len(runs) != len(wanted):
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return runs


def _runs_matching(info: GraphQLResolveInfo, filter: dict[str, Any]) -> list[Run]:
    rows = filtered(info, _replayable(info), **filter).ended().filter(is_draft=False)
    rows = rows.last_attempts().filter(script__deleted_at__isnull=True)
    if rows.values("pk")[: MAX_REPLAYS + 1].count() > MAX_REPLAYS:
        raise _too_many("filter")
    return list(rows[:MAX_REPLAYS])


def _replayable(info: GraphQLResolveInfo) -> Any:
    """Oldest first, as they are to run. Without payloads, which may have a gigabyte together."""
    return scoped(info, Run).only("organisation", "first_run").order_by("id")


def _too_many(field: str) -> GraphQLProblem:
    return GraphQLProblem(
        GraphQLCode.BAD_USER_INPUT, f"Replay at most {MAX_REPLAYS:,} runs at a time.", field=field
    )


def _steering(
    of_script: Callable[..., None], of_organisation: Callable[..., None]
) -> Callable[..., bool]:
    """Resolves a mutation of one script's queue, or of the whole organisation's."""

    def resolve(root: None, info: GraphQLResolveInfo, script: str | None = None) -> bool:
        origin = caller_origin(info)
        if script is None:
            of_organisation(caller_organisation(info), origin=origin)
        else:
            of_script(find(info, Script, script), origin=origin)
        return True

    return resolve


pause_queue_field = graphene.Boolean(
    required=True,
    description="Lets queued runs wait, of one script or of the whole organisation. Runs are "
    "still queued, and those in progress end. True, also if it was paused.",
    args={"script": graphene.ID(description="The script's id; null: all scripts.")},
    resolver=_steering(pause_script, pause_organisation),
)

resume_queue_field = graphene.Boolean(
    required=True,
    description="Ends a pause of one script, or that of the whole organisation. Scripts that are "
    "paused by themselves stay paused. True, also if it was not paused.",
    args={"script": graphene.ID(description="The script's id; null: the organisation's pause.")},
    resolver=_steering(resume_script, resume_organisation),
)


@extend(RunType)
class QueuedRun:
    due_at = graphene.DateTime(description="When a queued run may start; null for other runs.")

    @staticmethod
    def resolve_due_at(run: Run, info: GraphQLResolveInfo) -> datetime | None:
        if run.status != RunStatus.QUEUED:
            return None
        queued = [peer for peer in peers_of(run) if peer.status == RunStatus.QUEUED]
        entries = scoped(info, QueueEntry).only("run", "due_at")
        prefetch_related_objects(queued, Prefetch("queue_entry", entries))
        entry: QueueEntry | None = getattr(run, "queue_entry", None)
        return None if entry is None else entry.due_at
