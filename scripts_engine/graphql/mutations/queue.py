"""GraphQL mutations that queue, cancel and replay runs, and pause the queue."""

from collections.abc import Sequence
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, caller_organisation, find, scoped
from core.database.ids import parse_uuid
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.origin import origin_of
from scripts_engine.flows.author import Author
from scripts_engine.flows.queue.enqueue import MAX_DELAY_SECONDS, MAX_KEY_CHARACTERS
from scripts_engine.flows.queue.request_run import request_run
from scripts_engine.flows.queue.steer import (
    MAX_REPLAYS,
    NotQueuedError,
    NotReplayableError,
    cancel_run,
    pause_organisation,
    pause_script,
    replay_runs,
    resume_organisation,
    resume_script,
)
from scripts_engine.graphql.payload import event_of
from scripts_engine.graphql.run_filters import RunFilter, filtered
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, Script


def resolve_enqueue_run(
    root: None,
    info: GraphQLResolveInfo,
    script: str,
    body: str | None = "",
    delay_seconds: int | None = 0,
    key: str | None = None,
) -> Run:
    row = find(info, Script, script)
    with script_errors():
        queued = request_run(
            row,
            event=event_of(info, body),
            author=Author(api_key=caller_key(info)),
            delay_seconds=delay_seconds or 0,
            key=key,
        )
    run: Run | None = scoped(info, Run).filter(pk=queued.run_id).first()
    if run is None:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "The run with this key is no longer kept.")
    return run


enqueue_run_field = graphene.Field(
    graphene.NonNull(RunType),
    description="Queues a run of a script's current version and returns it. A key with which a run "
    "of the script was queued within 24 hours returns that run instead.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "body": graphene.String(default_value="", description="The payload."),
        "delay_seconds": graphene.Int(
            default_value=0, description=f"The earliest start: 0 to {MAX_DELAY_SECONDS}."
        ),
        "key": graphene.String(description=f"1 to {MAX_KEY_CHARACTERS} characters."),
    },
    resolver=resolve_enqueue_run,
)


def resolve_cancel_run(root: None, info: GraphQLResolveInfo, id: str) -> Run:
    run = find(info, Run, id)
    try:
        return cancel_run(run, origin=origin_of(info.context.request))
    except NotQueuedError:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "This run does not wait in the queue.", field="id"
        ) from None


cancel_run_field = graphene.Field(
    graphene.NonNull(RunType),
    description="Takes a queued run out of the queue. One that has started is not stopped.",
    args={"id": graphene.ID(required=True, description="The run's id.")},
    resolver=resolve_cancel_run,
)


def resolve_replay_runs(
    root: None,
    info: GraphQLResolveInfo,
    ids: Sequence[str] | None = None,
    filter: dict[str, Any] | None = None,
) -> int:
    if (ids is None) == (filter is None):
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "Give either ids or a filter.", field="ids"
        )
    runs = _runs_with(info, ids) if ids is not None else _runs_matching(info, filter or {})
    author, origin = Author(api_key=caller_key(info)), origin_of(info.context.request)
    try:
        with script_errors():
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
    wanted = {parse_uuid(each) for each in ids}
    runs = list(_replayable(info).filter(pk__in=wanted - {None}))
    if len(runs) != len(wanted):
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return runs


def _runs_matching(info: GraphQLResolveInfo, filter: dict[str, Any]) -> list[Run]:
    rows = filtered(info, _replayable(info), **filter).ended().of_saved_versions()
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


replay_runs_field = graphene.Int(
    required=True,
    description=f"Queues the payloads of at most {MAX_REPLAYS} runs that have ended again, for the "
    "current versions of their scripts: all or none. Returns how many. Settles dead letters. Takes "
    "either ids or a filter, which leaves out runs of unsaved sources and of deleted scripts, and "
    "attempts that another one followed.",
    args={
        "ids": graphene.List(graphene.NonNull(graphene.ID), description="The runs."),
        "filter": RunFilter(description="Selects the runs."),
    },
    resolver=resolve_replay_runs,
)


def resolve_pause_queue(root: None, info: GraphQLResolveInfo, script: str | None = None) -> bool:
    origin = origin_of(info.context.request)
    if script is None:
        pause_organisation(caller_organisation(info), origin=origin)
    else:
        pause_script(find(info, Script, script), origin=origin)
    return True


pause_queue_field = graphene.Boolean(
    required=True,
    description="Lets queued runs wait, of one script or of the whole organisation. Runs are "
    "still queued, and those in progress end. True, also if it was paused.",
    args={"script": graphene.ID(description="The script's id; null: all scripts.")},
    resolver=resolve_pause_queue,
)


def resolve_resume_queue(root: None, info: GraphQLResolveInfo, script: str | None = None) -> bool:
    origin = origin_of(info.context.request)
    if script is None:
        resume_organisation(caller_organisation(info), origin=origin)
    else:
        resume_script(find(info, Script, script), origin=origin)
    return True


resume_queue_field = graphene.Boolean(
    required=True,
    description="Ends a pause of one script, or that of the whole organisation. Scripts that are "
    "paused by themselves stay paused. True, also if it was not paused.",
    args={"script": graphene.ID(description="The script's id; null: the organisation's pause.")},
    resolver=resolve_resume_queue,
)
