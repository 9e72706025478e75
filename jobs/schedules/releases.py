"""Schedules in releases: their settings with the payload as text."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import Any

from django.db.models import TextChoices

from accounts.models import Organisation
from accounts.scopes import Scope
from core.database.ids import parse_uuid
from core.http.origin import Origin
from jobs.models import CatchUp, Overlap, Schedule
from jobs.schedules.cron import (
    InvalidCronError,
    UnknownTimeZoneError,
    clean_cron,
    clean_time_zone,
)
from jobs.schedules.saving import (
    KIND,
    MAX_PAYLOAD_BYTES,
    ChangedSchedule,
    locked_schedules,
    problems_of,
    save_schedules,
)
from scripts_engine.models import Script
from scripts_engine.releases.items import (
    Field,
    ProblemCode,
    Refers,
    WrongValueError,
    a_name,
    a_text,
    a_whole_number,
    always,
    in_column,
    one_of,
    yes_or_no,
)
from scripts_engine.releases.kinds import (
    Issued,
    Kind,
    State,
    about,
    choice_in,
    member_name,
    naming,
    value_in,
)

_DEFAULTS = {field.name: field.get_default() for field in Schedule._meta.concrete_fields}

_OVERLAPS = {member_name(choice): choice.label for choice in Overlap}
_CATCH_UPS = {member_name(choice): choice.label for choice in CatchUp}


def _cron(value: object) -> str:
    try:
        return clean_cron(a_text(value))
    except InvalidCronError as error:
        raise WrongValueError(ProblemCode.INVALID, str(error)) from None


def _time_zone(value: object) -> str:
    try:
        return clean_time_zone(a_text(value))
    except UnknownTimeZoneError as error:
        raise WrongValueError(ProblemCode.INVALID, str(error)) from None


def _payload(value: object) -> str:
    payload = a_text(value)
    if len(payload.encode()) > MAX_PAYLOAD_BYTES:
        message = f"Enter at most {MAX_PAYLOAD_BYTES:,} bytes."
        raise WrongValueError(ProblemCode.OUT_OF_RANGE, message)
    return payload


def _choice(name: str, column: str, choices: type[TextChoices]) -> Field:
    default = choices(_DEFAULTS[column])
    names = [member_name(choice) for choice in choices]
    return Field(name=name, check=one_of(names), default=always(member_name(default)))


class ScheduleKind(Kind):
    name = KIND
    section = "schedules"
    fields = (
        Field(name="name", check=a_name, is_required=True),
        Field(name="script", check=a_name, is_required=True, refers_to=Refers.SCRIPT),
        Field(name="cron", check=_cron, is_required=True),
        Field(name="timeZone", check=_time_zone, default=always(_DEFAULTS["time_zone"])),
        Field(name="payload", check=_payload, default=always("")),
        Field(name="enabled", check=yes_or_no, default=always(False), is_kept=True),
        _choice("overlap", "overlap", Overlap),
        _choice("catchUp", "catch_up", CatchUp),
        Field(
            name="catchUpWindowSeconds",
            check=in_column(Schedule, "catch_up_window_seconds", a_whole_number),
            default=always(_DEFAULTS["catch_up_window_seconds"]),
        ),
    )

    def states(
        self, organisation: Organisation, ids: Collection[uuid.UUID], *, lock: bool = False
    ) -> dict[uuid.UUID, State]:
        if lock:
            schedules = locked_schedules(organisation, ids)
        else:
            schedules = Schedule.objects.filter(organisation=organisation, pk__in=ids)
        return {schedule.pk: state_of(schedule) for schedule in schedules}

    def of_scripts(
        self, organisation: Organisation, script_ids: Collection[uuid.UUID]
    ) -> set[uuid.UUID]:
        schedules = Schedule.objects.filter(organisation=organisation, script__in=script_ids)
        return set(schedules.order_by().values_list("pk", flat=True))

    def scope_of(self, before: State | None, after: State | None) -> Scope:
        return Scope.WRITE_HOOKS

    def put(
        self,
        organisation: Organisation,
        states: Mapping[uuid.UUID, State | None],
        *,
        origin: Origin,
    ) -> Sequence[Issued]:
        rows = {row.pk: row for row in locked_schedules(organisation, states.keys())}
        changes: list[ChangedSchedule] = []
        for schedule_id, state in states.items():
            before = rows.get(schedule_id)
            if state is None:
                if before is not None:
                    changes.append(ChangedSchedule(before, before, is_deleted=True))
                continue
            schedule = copy(before) or Schedule(pk=schedule_id, organisation=organisation)
            with naming(KIND, state.get("name")):
                take(schedule, state)
            changes.append(ChangedSchedule(schedule, before))
        for schedule, problem in problems_of(organisation, changes):
            raise about(KIND, schedule.name, problem)
        save_schedules(organisation, changes, origin=origin)
        return ()

    def differences(
        self, organisation: Organisation, changes: Sequence[tuple[State | None, State | None]]
    ) -> list[str]:
        named = {state["script"] for change in changes for state in change if state is not None}
        scripts = Script.objects.ever_of_organisation(organisation).filter(pk__in=named)
        names = {str(pk): name for pk, name in scripts.values_list("pk", "name")}
        return [_difference(before, after, names) for before, after in changes]


def state_of(schedule: Schedule) -> State:
    return {
        "script": str(schedule.script_id),
        "name": schedule.name,
        "cron": schedule.cron,
        "timeZone": schedule.time_zone,
        "payload": bytes(schedule.payload).decode("utf-8", "replace"),
        "enabled": schedule.is_enabled,
        "overlap": member_name(Overlap(schedule.overlap)),
        "catchUp": member_name(CatchUp(schedule.catch_up)),
        "catchUpWindowSeconds": schedule.catch_up_window_seconds,
    }


def take(schedule: Schedule, state: State) -> None:
    """Sets the columns by a state, of which keys with defaults may be left out; saves nothing.

    The state may come from a client. Raises ``ValidationError`` by field.
    """
    payload = value_in(state, "payload", str)
    given: dict[str, Any] = {
        "script_id": parse_uuid(value_in(state, "script", str) or ""),
        "name": value_in(state, "name", str) or "",
        "cron": value_in(state, "cron", str) or "",
        "time_zone": value_in(state, "timeZone", str),
        "payload": None if payload is None else payload.encode(),
        "is_enabled": value_in(state, "enabled", bool),
        "overlap": choice_in(state, "overlap", Overlap),
        "catch_up": choice_in(state, "catchUp", CatchUp),
        "catch_up_window_seconds": value_in(state, "catchUpWindowSeconds", int),
    }
    for column, value in given.items():
        setattr(schedule, column, _DEFAULTS.get(column) if value is None else value)


def _difference(before: State | None, after: State | None, script_names: Mapping[str, str]) -> str:
    words = [_in_words(state, script_names) for state in (before, after) if state is not None]
    if len(words) == 1:
        return "\n".join(f"{label}: {value}" for label, value in words[0] if value)
    pairs = zip(*words, strict=True)
    changed = [(label, old, new) for (label, old), (_, new) in pairs if old != new]
    return "\n".join(f"{label}: {old} -> {new}" for label, old, new in changed)


def _in_words(state: State, script_names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each setting with its value, in one order for all states."""
    return [
        ("Name", state["name"]),
        ("Script", script_names.get(state["script"], "")),
        ("When", f"{state['cron']} ({state['timeZone']})"),
        ("Payload", state["payload"]),
        ("Enabled", "yes" if state["enabled"] else "no"),
        ("While a run is in progress", _OVERLAPS[state["overlap"]]),
        ("Catch up", _CATCH_UPS[state["catchUp"]]),
        ("Catch-up window", f"{state['catchUpWindowSeconds']:,} s"),
    ]
