"""GraphQL types, queries and mutations of schedules."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from django.utils import timezone
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find, scoped
from accounts.graphql.shared import enum_value, expected_revision
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_peers, bad_user_input, caller_origin, peers_of
from core.plain_text import is_encodable
from jobs.models import CatchUp, Overlap, Schedule, ScheduleTick, TickOutcome
from jobs.schedules.cron import InvalidCronError, UnknownTimeZoneError, next_ticks
from jobs.schedules.schedules import (
    create_schedule,
    delete_schedule,
    run_schedule_now,
    update_schedule,
)
from jobs.schedules.ticks import KEPT_TICKS
from scripts_engine.graphql.mutations import script_errors
from scripts_engine.graphql.runs import runs_to_list
from scripts_engine.graphql.types import RunType, ScriptType
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import Author

DEFAULT_NEXT_TICKS = 5
MAX_NEXT_TICKS = 20
DEFAULT_TICKS = 20
CRON = (
    "Five fields: minute, hour, day of month, month, day of week; also `L`, `LW`, `5L` and "
    "`MON#2`. Or `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight` or "
    "`@hourly`, which are answered as five fields."
)
TIME_ZONE = "An IANA time zone, as `Europe/Berlin`."

_RUN_OF_TICK = "run_of_tick"
_OVERLAPS = {
    Overlap.SKIP: "The tick is skipped.",
    Overlap.BUFFER_ONE: "One tick waits until the run has ended; further ones are skipped.",
    Overlap.ALLOW_ALL: "The runs overlap.",
}
_CATCH_UPS = {
    CatchUp.NONE: "None.",
    CatchUp.LATEST: "The latest one.",
    CatchUp.ALL: "All, at most the newest 100.",
}
_OUTCOMES = {
    TickOutcome.RAN: "A run was queued.",
    TickOutcome.LATE: "A run was queued over a minute late, for example after a downtime.",
    TickOutcome.SKIPPED_OVERLAP: "An earlier run had not ended.",
    TickOutcome.SKIPPED_MISSED: "No server was running, and the schedule does not catch up on it; "
    "or the script or its organisation was disabled.",
}


def _first(default: int, most: int) -> graphene.Int:
    return graphene.Int(default_value=default, description=f"How many, at most {most}.")


def _enum(name: str, description: str, texts: dict[Any, str]) -> Any:
    """An enum whose members are named like those of the model, in camel case."""

    def describe(member: Enum | None) -> str:
        return description if member is None else by_value[member.value]

    by_value = {choice.value: text for choice, text in texts.items()}
    members = [(choice.name.title().replace("_", ""), choice.value) for choice in texts]
    return graphene.Enum(name, members, description=describe)


OverlapEnum = _enum(
    "Overlap", "What happens at a tick while an earlier run has not ended.", _OVERLAPS
)
CatchUpEnum = _enum("CatchUp", "Which ticks run that were missed, within the window.", _CATCH_UPS)
TickOutcomeEnum = _enum("TickOutcome", "What came of a tick.", _OUTCOMES)


class ScheduleTickType(DjangoObjectType):
    """A tick of a schedule. The newest 200 are kept."""

    class Meta:
        name = "ScheduleTick"
        model = ScheduleTick
        skip_registry = True
        fields = ()

    at = graphene.DateTime(required=True, description="The time that the schedule gives.")
    outcome = graphene.Field(graphene.NonNull(TickOutcomeEnum), description="What came of it.")
    run = graphene.Field(
        RunType, description="Its run; null if there is none, or if it was deleted."
    )

    @staticmethod
    def resolve_at(tick: ScheduleTick, info: GraphQLResolveInfo) -> datetime:
        return tick.tick_at

    @staticmethod
    def resolve_outcome(tick: ScheduleTick, info: GraphQLResolveInfo) -> str:
        return str(tick.outcome)

    @staticmethod
    def resolve_run(tick: ScheduleTick, info: GraphQLResolveInfo) -> Run | None:
        if tick.run_id is None:
            return None
        if not hasattr(tick, _RUN_OF_TICK):
            peers = peers_of(tick)
            runs = runs_to_list(info).in_bulk([peer.run_id for peer in peers if peer.run_id])
            as_peers(runs.values())
            for peer in peers:
                setattr(peer, _RUN_OF_TICK, runs.get(peer.run_id))
        run: Run | None = getattr(tick, _RUN_OF_TICK)
        return run


class ScheduleType(DjangoObjectType):
    """When a script runs by itself."""

    class Meta:
        name = "Schedule"
        model = Schedule
        skip_registry = True
        fields = (
            "name",
            "cron",
            "time_zone",
            "catch_up_window_seconds",
            "last_tick_at",
            "next_tick_at",
            "revision",
        )

    id = graphene.ID(required=True, description="The schedule's id.")
    script = graphene.Field(graphene.NonNull(ScriptType), description="The script that it runs.")
    payload = graphene.String(required=True, description="The body that the script gets.")
    enabled = graphene.Boolean(required=True, description="Whether it has ticks.")
    overlap = graphene.Field(
        graphene.NonNull(OverlapEnum),
        description="What happens at a tick while an earlier run has not ended.",
    )
    catch_up = graphene.Field(
        graphene.NonNull(CatchUpEnum), description="Which ticks run that were missed."
    )
    created_at = graphene.DateTime(required=True, description="When it was created.")
    updated_at = graphene.DateTime(required=True, description="When it was last changed.")
    next_ticks = graphene.List(
        graphene.NonNull(graphene.DateTime),
        required=True,
        description="The next ticks after now; none while it is disabled.",
        first=_first(DEFAULT_NEXT_TICKS, MAX_NEXT_TICKS),
    )
    ticks = graphene.List(
        graphene.NonNull(ScheduleTickType),
        required=True,
        description="The latest ticks, newest first.",
        first=_first(DEFAULT_TICKS, KEPT_TICKS),
    )

    @staticmethod
    def resolve_script(schedule: Schedule, info: GraphQLResolveInfo) -> Script:
        return schedule.script

    @staticmethod
    def resolve_payload(schedule: Schedule, info: GraphQLResolveInfo) -> str:
        return bytes(schedule.payload).decode("utf-8", "replace")

    @staticmethod
    def resolve_enabled(schedule: Schedule, info: GraphQLResolveInfo) -> bool:
        return schedule.is_enabled

    @staticmethod
    def resolve_overlap(schedule: Schedule, info: GraphQLResolveInfo) -> str:
        return str(schedule.overlap)

    @staticmethod
    def resolve_catch_up(schedule: Schedule, info: GraphQLResolveInfo) -> str:
        return str(schedule.catch_up)

    @staticmethod
    def resolve_next_ticks(
        schedule: Schedule, info: GraphQLResolveInfo, first: int | None = None
    ) -> list[datetime]:
        count = _within(first, DEFAULT_NEXT_TICKS, MAX_NEXT_TICKS)
        if not schedule.is_enabled:
            return []
        return next_ticks(schedule.cron, schedule.time_zone, timezone.now(), count)

    @staticmethod
    def resolve_ticks(
        schedule: Schedule, info: GraphQLResolveInfo, first: int | None = None
    ) -> Sequence[ScheduleTick]:
        count = _within(first, DEFAULT_TICKS, KEPT_TICKS)
        return as_peers(schedule.ticks.order_by("-tick_at")[:count])


def _within(first: int | None, default: int, most: int) -> int:
    count = default if first is None else first
    if not 1 <= count <= most:
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, f"Enter 1 to {most}.", field="first")
    return count


ScheduleConnection = connection_of(ScheduleType)


class SchedulesQuery(graphene.ObjectType):
    schedules = connection_field(
        ScheduleConnection,
        "The schedules of the organisation's scripts.",
        script=graphene.ID(description="Only schedules of this script."),
        enabled=graphene.Boolean(description="Only enabled schedules, or only disabled ones."),
    )
    schedule = graphene.Field(
        ScheduleType,
        description="One schedule.",
        id=graphene.ID(required=True, description="The schedule's id."),
    )
    next_ticks = graphene.List(
        graphene.NonNull(graphene.DateTime),
        required=True,
        description="The next ticks that a schedule would have.",
        cron=graphene.String(required=True, description=CRON),
        time_zone=graphene.String(required=True, description=TIME_ZONE),
        first=_first(DEFAULT_NEXT_TICKS, MAX_NEXT_TICKS),
    )

    @staticmethod
    def resolve_schedules(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        script: str | None = None,
        enabled: bool | None = None,
    ) -> Page:
        rows = scoped(info, Schedule).select_related("script__current_version")
        if script is not None:
            rows = rows.filter(script=find(info, Script, script))
        if enabled is not None:
            rows = rows.filter(is_enabled=enabled)
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_schedule(root: None, info: GraphQLResolveInfo, id: str) -> Schedule:
        return find(info, Schedule, id)

    @staticmethod
    def resolve_next_ticks(
        root: None,
        info: GraphQLResolveInfo,
        cron: str,
        time_zone: str,
        first: int | None = None,
    ) -> list[datetime]:
        count = _within(first, DEFAULT_NEXT_TICKS, MAX_NEXT_TICKS)
        try:
            return next_ticks(cron, time_zone, timezone.now(), count)
        except InvalidCronError as error:
            raise _bad("cron", error) from None
        except UnknownTimeZoneError as error:
            raise _bad("timeZone", error) from None


def _bad(field: str, error: Exception) -> GraphQLProblem:
    return GraphQLProblem(GraphQLCode.BAD_USER_INPUT, str(error), field=field)


# --- Mutations ------------------------------------------------------------------------------------


def _arguments(*required: str) -> dict[str, graphene.Argument]:
    """What a schedule is made of. The names are those that the flows take, but ``enabled``."""
    described: dict[str, tuple[Any, str]] = {
        "script": (graphene.ID, "The id of the script that it runs."),
        "cron": (graphene.String, CRON),
        "time_zone": (graphene.String, f"{TIME_ZONE} UTC if not given."),
        "name": (graphene.String, "What it is for; no other schedule has it."),
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


@mutation(
    ScheduleType,
    "Creates a schedule. An organisation has at most 100.",
    errors=script_errors,
    **_arguments("script", "cron"),
)
def create_schedule_field(info: GraphQLResolveInfo, **given: Any) -> Schedule:
    fields = _fields(info, given)
    return create_schedule(fields.pop("script"), origin=caller_origin(info), **fields)


@mutation(
    ScheduleType,
    "Changes the given fields of a schedule, all or none. Enabled again, or with "
    "another cron or time zone, it goes on from now.",
    errors=script_errors,
    id=graphene.Argument(graphene.ID, required=True, description="The schedule's id."),
    **_arguments(),
    expected_revision=expected_revision(),
)
def update_schedule_field(
    info: GraphQLResolveInfo,
    id: str,
    expected_revision: int | None = None,
    **given: Any,
) -> Schedule:
    schedule = find(info, Schedule, id)
    return update_schedule(
        schedule,
        origin=caller_origin(info),
        expected_revision=expected_revision,
        **_fields(info, given),
    )


@mutation(
    graphene.Boolean,
    "Deletes a schedule. Its queued runs still run, and its runs stay readable.",
    id=graphene.ID(required=True, description="The schedule's id."),
)
def delete_schedule_field(info: GraphQLResolveInfo, id: str) -> bool:
    delete_schedule(find(info, Schedule, id), origin=caller_origin(info))
    return True


@mutation(
    RunType,
    "Queues a run with the schedule's payload, whatever its state. Its ticks go on as before.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The schedule's id."),
)
def run_schedule_now_field(info: GraphQLResolveInfo, id: str) -> Run:
    schedule = find(info, Schedule, id)
    return run_schedule_now(
        schedule,
        author=Author(api_key=caller_key(info)),
        origin=caller_origin(info),
    )
