"""Schedules at /admin/graphql."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import AuthEvent, Organisation
from jobs.models import QueueEntry, Schedule
from jobs.schedules.schedules import create_schedule
from jobs.schedules.ticks import run_due_schedules
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Run, Script
from tests.factories import GraphQLAnswer, admin_graphql, make_script

pytestmark = pytest.mark.django_db

FIELDS = """id name script { id } cron timeZone payload enabled overlap catchUp
    catchUpWindowSeconds lastTickAt nextTickAt"""
CREATE = f"""mutation($script: ID!, $cron: String!, $timeZone: String, $name: String,
    $payload: String, $enabled: Boolean, $overlap: Overlap, $catchUp: CatchUp, $window: Int) {{
    createSchedule(script: $script, cron: $cron, timeZone: $timeZone, name: $name,
        payload: $payload, enabled: $enabled, overlap: $overlap, catchUp: $catchUp,
        catchUpWindowSeconds: $window) {{ {FIELDS} }} }}"""
UPDATE = f"""mutation($id: ID!, $script: ID, $cron: String, $timeZone: String, $payload: String,
    $enabled: Boolean, $overlap: Overlap) {{
    updateSchedule(id: $id, script: $script, cron: $cron, timeZone: $timeZone, payload: $payload,
        enabled: $enabled, overlap: $overlap) {{ {FIELDS} }} }}"""
DELETE = "mutation($id: ID!) { deleteSchedule(id: $id) }"
RUN_NOW = "mutation($id: ID!) { runScheduleNow(id: $id) { id status trigger requestBody } }"
SCHEDULE = f"query($id: ID!) {{ schedule(id: $id) {{ {FIELDS} }} }}"
SCHEDULES = """query($script: ID, $enabled: Boolean) {
    schedules(script: $script, enabled: $enabled) { totalCount nodes { name } } }"""
NEXT = """query($cron: String!, $timeZone: String!, $first: Int) {
    nextTicks(cron: $cron, timeZone: $timeZone, first: $first) }"""
TICKS = """{ schedules { nodes { name nextTicks(first: 2) ticks(first: 3) {
    at outcome run { id status scheduledAt script { name } } } } } }"""


@pytest.fixture
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "jobs.graphql.schedules.timezone.now",
        lambda: datetime(2026, 11, 23, 9, 59, 30, tzinfo=UTC),
    )


@pytest.fixture
def theirs(globex: Organisation) -> Schedule:
    return create_schedule(make_script(globex), cron="* * * * *", name="theirs")


def refusal(answer: GraphQLAnswer) -> tuple[str | None, str | None]:
    return answer.code, answer.errors[0]["extensions"].get("field")


def test_shorthand_is_answered_as_its_fields(script: Script, acme_token: str) -> None:
    answer = admin_graphql(CREATE, acme_token, script=str(script.pk), cron="@daily")

    assert answer.data["createSchedule"]["cron"] == "0 0 * * *"
    assert Schedule.objects.get().cron == "0 0 * * *"


def test_a_schedule_is_created_with_defaults_and_with_everything(
    script: Script, acme_token: str
) -> None:
    answer = admin_graphql(CREATE, acme_token, script=str(script.pk), cron="0 6 * * mon-fri")
    assert answer.errors == []
    created = answer.data["createSchedule"]
    assert datetime.fromisoformat(created.pop("nextTickAt")).strftime("%H:%M") == "06:00"
    assert created == {
        "id": str(Schedule.objects.get().pk),
        "name": "echo",
        "script": {"id": str(script.pk)},
        "cron": "0 6 * * MON-FRI",
        "timeZone": "UTC",
        "payload": "",
        "enabled": True,
        "overlap": "Skip",
        "catchUp": "Latest",
        "catchUpWindowSeconds": 3600,
        "lastTickAt": None,
    }
    answer = admin_graphql(
        CREATE,
        acme_token,
        script=str(script.pk),
        cron="*/5 * * * *",
        timeZone="Europe/Berlin",
        name="report",
        payload='{"ä": 1}',
        enabled=False,
        overlap="BufferOne",
        catchUp="All",
        window=60,
    )
    full = answer.data["createSchedule"]
    shown = admin_graphql(SCHEDULE, acme_token, id=full["id"])
    assert full == shown.data["schedule"]
    assert full | {"id": "", "script": None} == {
        "id": "",
        "name": "report",
        "script": None,
        "cron": "*/5 * * * *",
        "timeZone": "Europe/Berlin",
        "payload": '{"ä": 1}',
        "enabled": False,
        "overlap": "BufferOne",
        "catchUp": "All",
        "catchUpWindowSeconds": 60,
        "lastTickAt": None,
        "nextTickAt": None,
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "0 0 31 6 *"}, "cron"),
        ({"timeZone": "Mars"}, "timeZone"),
        ({"timeZone": "../UTC"}, "timeZone"),
        ({"payload": "x" * 65_537}, "payload"),
        ({"name": "x" * 201}, "name"),
        ({"window": -1}, "catchUpWindowSeconds"),
    ],
)
def test_bad_input_names_its_field(
    script: Script, acme_token: str, given: dict[str, Any], field: str
) -> None:
    good = {"script": str(script.pk), "cron": "* * * * *"}
    assert admin_graphql(CREATE, acme_token, **good).errors == []
    answer = admin_graphql(CREATE, acme_token, **{**good, **given})
    assert refusal(answer) == ("BAD_USER_INPUT", field)
    assert Schedule.objects.count() == 1


def test_an_update_changes_what_is_given(script: Script, acme_token: str) -> None:
    schedule = create_schedule(script, cron="0 * * * *", name="report", payload=b"a")
    answer = admin_graphql(UPDATE, acme_token, id=str(schedule.pk), overlap="AllowAll")
    changed = answer.data["updateSchedule"]
    assert (changed["overlap"], changed["cron"], changed["payload"], changed["name"]) == (
        "AllowAll",
        "0 * * * *",
        "a",
        "report",
    )
    answer = admin_graphql(UPDATE, acme_token, id=str(schedule.pk), enabled=False)
    assert answer.data["updateSchedule"]["nextTickAt"] is None
    refused = admin_graphql(UPDATE, acme_token, id=str(schedule.pk), cron="61 * * * *", payload="b")
    assert refusal(refused) == ("BAD_USER_INPUT", "cron")
    schedule.refresh_from_db()
    assert (schedule.cron, bytes(schedule.payload)) == ("0 * * * *", b"a")
    assert "warehouse" in str(
        AuthEvent.objects.get(kind="schedule.changed", reason="overlap").actor_label
    )


def test_deletion_and_run_now(script: Script, acme_token: str) -> None:
    schedule = create_schedule(script, cron="0 * * * *", payload=b"now")
    answer = admin_graphql(RUN_NOW, acme_token, id=str(schedule.pk))
    run = answer.data["runScheduleNow"]
    assert run | {"id": ""} == {
        "id": "",
        "status": "Queued",
        "trigger": "schedule",
        "requestBody": "now",
    }
    assert str(QueueEntry.objects.get().pk) == run["id"]
    Script.objects.update(is_enabled=False)
    assert refusal(admin_graphql(RUN_NOW, acme_token, id=str(schedule.pk))) == (
        "BAD_USER_INPUT",
        "id",
    )
    assert admin_graphql(DELETE, acme_token, id=str(schedule.pk)).data == {"deleteSchedule": True}
    assert admin_graphql(DELETE, acme_token, id=str(schedule.pk)).code == "NOT_FOUND"
    assert Run.objects.count() == 1


def test_run_now_while_the_queue_is_full(script: Script, acme_token: str, settings: Any) -> None:
    schedule = create_schedule(script, cron="0 * * * *")
    settings.QUEUE_MAX_WAITING = 0
    answer = admin_graphql(RUN_NOW, acme_token, id=str(schedule.pk))
    assert (answer.code, answer.errors[0]["extensions"]["retryAfter"]) == ("RATE_LIMITED", 60)
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "mutation", [SCHEDULE, DELETE, RUN_NOW, UPDATE], ids=["read", "delete", "run", "update"]
)
def test_schedules_of_others_are_not_found(
    theirs: Schedule, acme_token: str, globex_token: str, mutation: str
) -> None:
    answer = admin_graphql(mutation, acme_token, id=str(theirs.pk))
    assert answer.code == "NOT_FOUND"
    assert Schedule.objects.filter(pk=theirs.pk).exists()
    assert not Run.objects.exists()
    assert admin_graphql(mutation, globex_token, id=str(theirs.pk)).errors == []


def test_scripts_of_others_are_not_found(theirs: Schedule, script: Script, acme_token: str) -> None:
    foreign = str(theirs.script_id)
    assert admin_graphql(CREATE, acme_token, script=foreign, cron="* * * * *").code == "NOT_FOUND"
    mine = create_schedule(script, cron="0 * * * *")
    assert admin_graphql(UPDATE, acme_token, id=str(mine.pk), script=foreign).code == "NOT_FOUND"
    assert admin_graphql(SCHEDULES, acme_token, script=foreign).code == "NOT_FOUND"
    mine.refresh_from_db()
    assert mine.script_id == script.pk


def test_schedules_need_a_session(script: Script) -> None:
    answer = admin_graphql(CREATE, script=str(script.pk), cron="* * * * *")
    assert answer.code == "UNAUTHENTICATED"
    assert not Schedule.objects.exists()


def test_the_list_is_the_organisations_and_filters(
    script: Script, theirs: Schedule, acme: Organisation, acme_token: str
) -> None:
    other = make_script(acme, name="other")
    create_schedule(script, cron="0 * * * *", name="a")
    create_schedule(script, cron="0 * * * *", name="b", is_enabled=False)
    create_schedule(other, cron="0 * * * *", name="c")

    def names(**filters: Any) -> list[str]:
        found = admin_graphql(SCHEDULES, acme_token, **filters).data["schedules"]
        assert found["totalCount"] == len(found["nodes"])
        return [node["name"] for node in found["nodes"]]

    assert names() == ["c", "b", "a"]
    assert names(script=str(script.pk)) == ["b", "a"]
    assert names(enabled=False) == ["b"]
    delete_script(other)
    assert names() == ["b", "a"]


@pytest.mark.usefixtures("_now")
def test_next_ticks_before_saving(acme_token: str) -> None:
    answer = admin_graphql(
        NEXT, acme_token, cron="0 9 * * MON#2", timeZone="Europe/Berlin", first=2
    )
    assert answer.data["nextTicks"] == ["2026-12-14T08:00:00+00:00", "2027-01-11T08:00:00+00:00"]
    answer = admin_graphql(NEXT, acme_token, cron="* * * * *", timeZone="UTC")
    assert len(answer.data["nextTicks"]) == 5


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"cron": "@reboot"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"timeZone": "Mars"}, "timeZone"),
        ({"first": 0}, "first"),
        ({"first": 21}, "first"),
    ],
)
def test_next_ticks_of_bad_input(acme_token: str, given: dict[str, Any], field: str) -> None:
    answer = admin_graphql(NEXT, acme_token, **{"cron": "* * * * *", "timeZone": "UTC", **given})
    assert refusal(answer) == ("BAD_USER_INPUT", field)


def test_ticks_show_outcomes_and_runs_with_few_queries(script: Script, acme_token: str) -> None:
    for name in ("a", "b"):
        make_ticked(script, name)
    Run.objects.filter(pk=Run.objects.order_by("id")[0].pk).delete()
    admin_graphql(TICKS, acme_token)
    with CaptureQueriesContext(connection) as statements:
        answer = admin_graphql(TICKS, acme_token)
    reads = [each["sql"] for each in statements if "run" in each["sql"] and "SELECT" in each["sql"]]
    second, first = answer.data["schedules"]["nodes"]
    assert [tick["outcome"] for tick in second["ticks"]] == ["SkippedOverlap", "Late"]
    assert [tick["run"] is None for tick in second["ticks"]] == [True, False]
    assert second["ticks"][1]["run"]["scheduledAt"] == second["ticks"][1]["at"]
    assert first["ticks"][1]["run"] is None
    assert len(second["nextTicks"]) == 2
    assert len([sql for sql in reads if "scripts_engine_run" in sql]) <= 2


def make_ticked(script: Script, name: str) -> Schedule:
    """Its first tick ran late, the second met the run of the first."""
    schedule = create_schedule(script, cron="0 * * * *", name=name, catch_up="all")
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    earlier = first - timedelta(hours=1)
    Schedule.objects.filter(pk=schedule.pk).update(
        next_tick_at=earlier, catch_up_window_seconds=604_800
    )
    run_due_schedules()
    return schedule
