"""Usage at /admin/graphql."""

import uuid
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Organisation
from hooks.flows.hooks import delete_hook
from hooks.models import Hook
from scripts_engine.flows.scripts import delete_script
from scripts_engine.graphql import usage
from scripts_engine.models import DailyUsage
from scripts_engine.models.usage import NO_HOOK
from tests.factories import GraphQLAnswer, admin_graphql, hook_that

pytestmark = pytest.mark.django_db

USAGE = """query($since: DateTime!, $until: DateTime) { usage(since: $since, until: $until) {
    day script { name } scriptId hook { name } hookId calls failures bytes cpuSeconds } }"""


def day(ago: int) -> date:
    return timezone.now().astimezone(UTC).date() - timedelta(days=ago)


def start_of(ago: int) -> str:
    return f"{day(ago)}T00:00:00Z"


def used(hook: Hook, ago: int = 0, hook_id: Any = None, **values: Any) -> DailyUsage:
    return DailyUsage.objects.create(
        organisation=hook.script.organisation,
        script_id=hook.script_id,
        hook_id=hook_id or hook.pk,
        day=day(ago),
        **{"calls": 1, "failures": 0, "bytes": 10, "cpu_seconds": 0.5, **values},
    )


def days_of(answer: GraphQLAnswer) -> list[str]:
    return [row["day"] for row in answer.data["usage"]]


def refusal(answer: GraphQLAnswer) -> tuple[object, ...]:
    extensions = answer.errors[0]["extensions"]
    return answer.data, answer.code, extensions.get("field"), answer.errors[0]["message"]


def test_usage_is_answered_by_day_script_and_hook(acme_token: str, hook: Hook) -> None:
    used(hook, ago=1, calls=7, failures=2, bytes=5_000_000_000, cpu_seconds=1.25)
    used(hook, hook_id=NO_HOOK)
    answer = admin_graphql(USAGE, acme_token, since=start_of(1))

    script = {"script": {"name": "echo"}, "scriptId": str(hook.script_id)}
    assert answer.data["usage"] == [
        {
            "day": str(day(1)),
            **script,
            "hook": {"name": "shop"},
            "hookId": str(hook.pk),
            "calls": 7,
            "failures": 2,
            "bytes": 5e9,
            "cpuSeconds": 1.25,
        },
        {
            "day": str(day(0)),
            **script,
            "hook": None,
            "hookId": None,
            "calls": 1,
            "failures": 0,
            "bytes": 10.0,
            "cpuSeconds": 0.5,
        },
    ]


def test_whole_days_are_answered_from_since_until_before_until(acme_token: str, hook: Hook) -> None:
    for ago in (4, 3, 2, 1):
        used(hook, ago)
    answer = admin_graphql(
        USAGE, acme_token, since=f"{day(3)}T23:00:00Z", until=f"{day(1)}T00:00:00Z"
    )

    assert days_of(answer) == [str(day(3)), str(day(2))]


def test_times_of_other_zones_are_taken_as_utc(acme_token: str, hook: Hook) -> None:
    used(hook, ago=2)
    used(hook, ago=1)
    # 00:30 in Berlin is the evening before in UTC.
    answer = admin_graphql(USAGE, acme_token, since=start_of(2), until=f"{day(1)}T00:30:00+01:00")

    assert days_of(answer) == [str(day(2))]


def test_the_oldest_day_is_answered_and_the_one_before_is_refused(
    acme_token: str, hook: Hook
) -> None:
    used(hook, ago=89)
    oldest = admin_graphql(USAGE, acme_token, since=start_of(89))
    before = admin_graphql(USAGE, acme_token, since=start_of(90))

    assert days_of(oldest) == [str(day(89))]
    message = f"Usage is kept for 90 days: since {day(89)} (UTC)."
    assert refusal(before) == (None, "BAD_USER_INPUT", "since", message)


@pytest.mark.parametrize("until", [start_of(3), start_of(4)])
def test_a_range_without_a_moment_is_refused(acme_token: str, until: str) -> None:
    answer = admin_graphql(USAGE, acme_token, since=start_of(3), until=until)

    message = "This must be later than since."
    assert refusal(answer) == (None, "BAD_USER_INPUT", "until", message)


def test_a_time_to_come_is_refused(acme_token: str) -> None:
    since = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    answer = admin_graphql(USAGE, acme_token, since=since)

    assert refusal(answer) == (None, "BAD_USER_INPUT", "since", "This is not in the past.")


def test_a_time_out_of_range_is_refused(acme_token: str) -> None:
    answer = admin_graphql(USAGE, acme_token, since="0001-01-01T00:00:00+14:00")

    assert refusal(answer)[:3] == (None, "BAD_USER_INPUT", "since")


def test_too_many_rows_are_refused(
    acme_token: str, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "MAX_ROWS", 2)
    for ago in (2, 1, 0):
        used(hook, ago)
    all_days = admin_graphql(USAGE, acme_token, since=start_of(2))
    fewer = admin_graphql(USAGE, acme_token, since=start_of(1))

    message = "These are more than 2 rows. Ask for fewer days at a time."
    assert refusal(all_days) == (None, "LIMIT_EXCEEDED", None, message)
    assert len(fewer.data["usage"]) == 2


def test_another_organisations_usage_is_not_answered(acme_token: str, globex: Organisation) -> None:
    used(hook_that(globex))
    answer = admin_graphql(USAGE, acme_token, since=start_of(0))

    assert answer.data == {"usage": []}


def test_deleted_scripts_and_hooks_are_answered_while_they_are_kept(
    acme_token: str, hook: Hook
) -> None:
    used(hook)
    delete_hook(hook)
    delete_script(hook.script)
    kept = admin_graphql(USAGE, acme_token, since=start_of(0))
    ids = {"script_id": uuid.uuid4(), "hook_id": uuid.uuid4()}
    DailyUsage.objects.update(**ids)
    gone = admin_graphql(USAGE, acme_token, since=start_of(0))

    [row] = kept.data["usage"]
    assert (row["script"], row["hook"]) == ({"name": "echo"}, {"name": "shop"})
    [row] = gone.data["usage"]
    assert (row["script"], row["hook"]) == (None, None)
    assert (row["scriptId"], row["hookId"]) == tuple(map(str, ids.values()))


def test_more_rows_take_no_more_queries(acme: Organisation, acme_token: str) -> None:
    used(hook_that(acme, name="tea"))
    with CaptureQueriesContext(connection) as few:
        admin_graphql(USAGE, acme_token, since=start_of(0))
    for number in range(5):
        used(hook_that(acme, name=f"pot {number}"))
    with CaptureQueriesContext(connection) as many:
        answer = admin_graphql(USAGE, acme_token, since=start_of(0))

    assert len(answer.data["usage"]) == 6
    assert len(many) == len(few)
