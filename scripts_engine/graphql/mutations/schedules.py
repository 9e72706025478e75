"""GraphQL mutations that create, change, delete and run schedules."""

from enum import Enum
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from graphql import GraphQLResolveInfo

from accounts.graphql.enums import enum_value
from accounts.graphql.scope import caller_key, find
from core.graphql.resolving import bad_user_input
from core.http.origin import origin_of
from core.plain_text import is_encodable
from scripts_engine.flows.author import Author
from scripts_engine.flows.schedules.run_now import run_schedule_now
from scripts_engine.flows.schedules.schedules import (
    create_schedule,
    delete_schedule,
    update_schedule,
)
from scripts_engine.graphql.schedules import (
    CRON,
    TIME_ZONE,
    CatchUpEnum,
    OverlapEnum,
    ScheduleType,
)
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, Schedule, Script


def _arguments(*required: str) -> dict[str, graphene.Argument]:
    """What a schedule is made of. The names are those that the flows take, but ``enabled``."""
    described: dict[str, tuple[Any, str]] = {
        "script": (graphene.ID, "The id of the script that it runs."),
        "cron": (graphene.String, CRON),
        "time_zone": (graphene.String, f"{TIME_ZONE} UTC if not given."),
        "name": (graphene.String, "What it is for."),
        "payload": (graphene.String, "The body that the script gets: at most 64 KiB."),
        "enabled": (graphene.Boolean, "Whether it has ticks. Those in between are not missed."),
        "overlap": (OverlapEnum, "What happens at a tick while an earlier run has not ended."),
        "catch_up": (CatchUpEnum, "Which ticks run that were missed."),
        "catch_up_window_seconds": (
            graphene.Int,
            "Ticks that were missed longer ago do not run: 0 to 604800.",
        ),
    }
    return {
        name: graphene.Argument(type_, required=name in required, description=text)
        for name, (type_, text) in described.items()
    }


def _fields(info: GraphQLResolveInfo, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the flows take them, without those that are null."""
    fields = {name: value for name, value in given.items() if value is not None}
    if "enabled" in fields:
        fields["is_enabled"] = fields.pop("enabled")
    if "script" in fields:
        fields["script"] = find(info, Script, fields["script"])
    if "payload" in fields:
        fields["payload"] = _encoded(fields["payload"])
    return {
        name: enum_value(value) if isinstance(value, Enum) else value
        for name, value in fields.items()
    }


def _encoded(payload: str) -> bytes:
    if not is_encodable(payload):
        raise bad_user_input(ValidationError("The payload is not valid text."), "payload")
    return payload.encode()


def resolve_create_schedule(root: None, info: GraphQLResolveInfo, **given: Any) -> Schedule:
    fields = _fields(info, given)
    with script_errors():
        return create_schedule(
            fields.pop("script"), origin=origin_of(info.context.request), **fields
        )


create_schedule_field = graphene.Field(
    graphene.NonNull(ScheduleType),
    description="Creates a schedule. An organisation has at most 100.",
    args=_arguments("script", "cron"),
    resolver=resolve_create_schedule,
)


def resolve_update_schedule(
    root: None, info: GraphQLResolveInfo, id: str, **given: Any
) -> Schedule:
    schedule = find(info, Schedule, id)
    with script_errors():
        return update_schedule(
            schedule, origin=origin_of(info.context.request), **_fields(info, given)
        )


update_schedule_field = graphene.Field(
    graphene.NonNull(ScheduleType),
    description="Changes the given fields of a schedule, all or none. Enabled again, or with "
    "another cron or time zone, it goes on from now.",
    args={
        "id": graphene.Argument(graphene.ID, required=True, description="The schedule's id."),
        **_arguments(),
    },
    resolver=resolve_update_schedule,
)


def resolve_delete_schedule(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    delete_schedule(find(info, Schedule, id), origin=origin_of(info.context.request))
    return True


delete_schedule_field = graphene.Boolean(
    required=True,
    description="Deletes a schedule. Its queued runs still run, and its runs stay readable.",
    args={"id": graphene.ID(required=True, description="The schedule's id.")},
    resolver=resolve_delete_schedule,
)


def resolve_run_schedule_now(root: None, info: GraphQLResolveInfo, id: str) -> Run:
    schedule = find(info, Schedule, id)
    with script_errors():
        return run_schedule_now(
            schedule,
            author=Author(api_key=caller_key(info)),
            origin=origin_of(info.context.request),
        )


run_schedule_now_field = graphene.Field(
    graphene.NonNull(RunType),
    description="Queues a run with the schedule's payload, whatever its state. Its ticks go on as "
    "before.",
    args={"id": graphene.ID(required=True, description="The schedule's id.")},
    resolver=resolve_run_schedule_now,
)
