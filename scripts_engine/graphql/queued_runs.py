"""The fields of a run that say how it came into the queue and how often it was tried."""

from collections.abc import Sequence
from datetime import datetime

import graphene
from graphql import GraphQLResolveInfo

from scripts_engine.graphql.related_runs import due_at, pushed_runs, related_run, run_with_payload
from scripts_engine.models import Run

# By its name: the type of runs has these fields.
_RUN = "scripts_engine.graphql.types.RunType"


class QueuedRunFields:
    """Mixin for the type of runs."""

    attempt = graphene.Int(
        required=True, description="The number of the attempt, from 1. Each attempt is a run."
    )
    first_run = graphene.Field(
        _RUN,
        description="The first attempt, which has the payload of all: the run itself if it is the "
        "first; null if that one was deleted.",
    )
    dead_letter = graphene.Boolean(
        required=True, description="Whether the last attempt failed and was not replayed since."
    )
    due_at = graphene.DateTime(description="When a queued run may start; null for other runs.")
    scheduled_at = graphene.DateTime(
        description="The time of the schedule at which it was due; null if no schedule ran it."
    )
    pushed_by = graphene.Field(_RUN, description="The run whose script put it into the queue.")
    pushed_runs = graphene.List(
        graphene.NonNull(_RUN),
        required=True,
        description="What the run's script put into the queue, oldest first: the first attempts.",
    )
    replay_of = graphene.Field(_RUN, description="The run whose payload it runs again.")

    @staticmethod
    def resolve_attempt(run: Run, info: GraphQLResolveInfo) -> int:
        return run.attempt or 1

    @staticmethod
    def resolve_first_run(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return run_with_payload(run, info)

    @staticmethod
    def resolve_dead_letter(run: Run, info: GraphQLResolveInfo) -> bool:
        return bool(run.is_dead_letter)

    @staticmethod
    def resolve_due_at(run: Run, info: GraphQLResolveInfo) -> datetime | None:
        return due_at(run, info)

    @staticmethod
    def resolve_pushed_by(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return related_run(run, info, "pushed_by")

    @staticmethod
    def resolve_pushed_runs(run: Run, info: GraphQLResolveInfo) -> Sequence[Run]:
        return pushed_runs(run, info)

    @staticmethod
    def resolve_replay_of(run: Run, info: GraphQLResolveInfo) -> Run | None:
        return related_run(run, info, "replay_of")
