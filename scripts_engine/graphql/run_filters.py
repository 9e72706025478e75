"""Which runs a list shows and which ones are replayed."""

import uuid
from datetime import datetime
from enum import Enum
from typing import Any

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import enum_value
from accounts.graphql.scope import find_even_deleted, scoped
from core.database.ids import parse_uuid
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_utc
from scripts_engine.graphql.run_status import RunStatusEnum
from scripts_engine.models import Hook, Run, Script


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
        rows = rows.filter(hook=find_even_deleted(info, Hook, hook))
    if (ended_as := enum_value(status)) is not None:
        rows = rows.ended_as(ended_as)
    if dead_letter is not None:
        rows = rows.dead_letters() if dead_letter else rows.exclude(is_dead_letter=True)
    return rows.started_between(
        None if since is None else as_utc(since, "since"),
        None if until is None else as_utc(until, "until"),
    )


def attempts_of(info: GraphQLResolveInfo, first_run: str) -> list[uuid.UUID]:
    """The ids of all attempts, even if the first one was deleted. Raises NOT_FOUND without any.

    Found apart from the list, each by its index: an alternative in one query would cost the scan of
    the organisation's runs.
    """
    first_run_id = parse_uuid(first_run)
    runs = scoped(info, Run).order_by().values_list("pk", flat=True)
    found: list[uuid.UUID] = []
    if first_run_id is not None:
        found += runs.filter(pk=first_run_id)
        found += runs.filter(first_run=first_run_id)
    if not found:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return found
