"""Each change of schedules is one release, and their kind puts any state back."""

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ActorKind, AuthEvent, Organisation
from accounts.scopes import Scope
from core.errors import ConflictError, NotFoundError
from core.http.origin import Actor, Origin
from jobs.models import Schedule, ScheduleTick
from jobs.queue.enqueue import request_run
from jobs.schedules import saving
from jobs.schedules.releases import state_of
from jobs.schedules.saving import KIND
from jobs.schedules.schedules import (
    create_schedule,
    delete_schedule,
    delete_schedules,
    run_schedule_now,
    update_schedule,
)
from scripts_engine.models import Release, ReleaseChange, Run, Script
from scripts_engine.models.release import ReleaseQuerySet
from scripts_engine.releases.kinds import Kind, State, kind_named
from scripts_engine.releases.recording import releasing
from scripts_engine.runs.spec import NOBODY
from tests.factories import event_with, make_organisation, make_script

pytestmark = pytest.mark.django_db

ALICE = Origin(actor=Actor(ActorKind.COMMAND, "alice", "alice"))
BOB = Origin(actor=Actor(ActorKind.COMMAND, "bob", "bob"))


@pytest.fixture
def kind() -> Kind:
    return kind_named(KIND)


def put(kind: Kind, organisation: Organisation, states: Mapping[uuid.UUID, State | None]) -> None:
    with releasing(organisation.pk, ALICE) as watched:
        watched.watch(kind, states)
        assert kind.put(organisation, states, origin=ALICE) == ()


def releases() -> ReleaseQuerySet:
    """Those of schedules."""
    return Release.objects.filter(changes__kind=KIND).distinct()


def test_each_change_of_a_schedule_is_a_release(script: Script) -> None:
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *", origin=ALICE)
    update_schedule(schedule, name="daily", origin=ALICE)
    update_schedule(schedule, payload=b"now", origin=BOB)
    update_schedule(schedule, payload=b"now", origin=BOB)
    delete_schedule(schedule, origin=BOB)

    changes = ReleaseChange.objects.filter(kind=KIND).order_by("release__number")
    assert list(changes.values_list("kind", "action", "name", "release__actor_label")) == [
        ("Schedule", "Create", "nightly", "alice"),
        ("Schedule", "Rename", "daily", "alice"),
        ("Schedule", "Update", "daily", "bob"),
        ("Schedule", "Delete", "daily", "bob"),
    ]


def test_several_schedules_are_deleted_as_one_release(script: Script) -> None:
    schedules = [create_schedule(script, cron="0 0 * * *") for _ in range(2)]

    delete_schedules(schedules)

    assert [release.changes.count() for release in releases()] == [2, 1, 1]
    assert not Schedule.objects.exists()


# --- Names and revisions --------------------------------------------------------------------------


def test_a_schedule_without_a_name_gets_that_of_its_script(script: Script) -> None:
    names = [create_schedule(script, cron="* * * * *").name for _ in range(2)]

    assert names == [script.name, f"{script.name} 2"]


def test_a_name_is_taken_in_the_whole_organisation_and_no_further(script: Script) -> None:
    create_schedule(script, name="Straße", cron="* * * * *")
    other = create_schedule(make_script(script.organisation), name="other", cron="* * * * *")
    theirs = make_script(make_organisation("Globex"))
    before = releases().count(), AuthEvent.objects.count()

    with pytest.raises(ValidationError) as created:
        create_schedule(script, name="STRASSE", cron="* * * * *")
    with pytest.raises(ValidationError) as renamed:
        update_schedule(other, name=" strasse ")

    assert list(created.value.error_dict) == list(renamed.value.error_dict) == ["name"]
    assert set(Schedule.objects.values_list("name", flat=True)) == {"Straße", "other"}
    assert (releases().count(), AuthEvent.objects.count()) == before
    assert create_schedule(theirs, name="Straße", cron="* * * * *").name == "Straße"


def test_a_schedule_that_has_moved_on_is_a_conflict(script: Script) -> None:
    schedule = create_schedule(script, cron="0 0 * * *", origin=ALICE)
    assert (schedule.revision, schedule.revised_by) == (1, "alice")
    changed = update_schedule(schedule, cron="0 1 * * *", origin=BOB, expected_revision=1)
    assert (changed.revision, changed.revised_by) == (2, "bob")

    with pytest.raises(ConflictError) as refused:
        update_schedule(schedule, cron="0 2 * * *", expected_revision=1)

    assert refused.value.extensions == {"by": "bob", "at": changed.revised_at.isoformat()}
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.revision) == ("0 1 * * *", 2)
    assert releases().count() == 2


def test_a_schedule_that_was_deleted_meanwhile_is_not_changed(script: Script) -> None:
    schedule = create_schedule(script, cron="0 0 * * *")
    delete_schedule(schedule)

    with pytest.raises(NotFoundError):
        update_schedule(schedule, cron="0 1 * * *")

    assert not Schedule.objects.exists()


# --- Libraries ------------------------------------------------------------------------------------


def test_a_library_does_not_run_by_itself(script: Script) -> None:
    schedule = create_schedule(script, cron="0 0 * * *")
    library = make_script(script.organisation, name="money")
    Script.objects.filter(pk=library.pk).update(is_library=True)
    library.refresh_from_db()

    for act in (
        lambda: create_schedule(library, cron="0 0 * * *"),
        lambda: update_schedule(schedule, script=library),
        lambda: request_run(library, event=event_with(), author=NOBODY),
        lambda: run_schedule_now(Schedule(script=library), author=NOBODY),
    ):
        with pytest.raises(ValidationError) as refused:
            act()
        assert list(refused.value.error_dict) == ["script"]

    assert list(Schedule.objects.values_list("script", flat=True)) == [script.pk]
    assert not Run.objects.exists()


# --- The kind -------------------------------------------------------------------------------------


def test_a_state_has_all_settings_by_their_names_in_graphql(script: Script, kind: Kind) -> None:
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *", payload="né".encode())

    assert kind.states(script.organisation, [schedule.pk]) == {
        schedule.pk: {
            "script": str(script.pk),
            "name": "nightly",
            "cron": "0 0 * * *",
            "timeZone": "UTC",
            "payload": "né",
            "enabled": True,
            "overlap": "Skip",
            "catchUp": "Latest",
            "catchUpWindowSeconds": 3600,
        }
    }
    assert kind.of_scripts(script.organisation, [script.pk]) == {schedule.pk}
    assert kind.scope_of(None, state_of(schedule)) is Scope.WRITE_HOOKS


def test_states_are_of_one_organisation(script: Script, kind: Kind) -> None:
    globex = make_organisation("Globex")
    theirs = create_schedule(make_script(globex), cron="0 0 * * *")

    assert kind.states(script.organisation, [theirs.pk]) == {}
    assert kind.states(script.organisation, [theirs.pk], lock=True) == {}
    assert kind.of_scripts(script.organisation, [theirs.script_id]) == set()


def test_each_change_is_put_back(script: Script, kind: Kind) -> None:
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *")
    before = state_of(schedule)
    update_schedule(
        schedule,
        name="hourly",
        cron="0 * * * *",
        payload=b"x",
        is_enabled=False,
        overlap="allow-all",
    )
    after = state_of(Schedule.objects.get())

    put(kind, script.organisation, {schedule.pk: before})
    restored = Schedule.objects.get()
    assert state_of(restored) == before
    assert restored.next_tick_at is not None
    put(kind, script.organisation, {schedule.pk: after})
    assert state_of(Schedule.objects.get()) == after
    assert Schedule.objects.get().next_tick_at is None


def test_a_deleted_schedule_comes_back_with_its_id_and_goes_on_from_now(
    script: Script, kind: Kind
) -> None:
    schedule = create_schedule(script, name="nightly", cron="* * * * *")
    state = state_of(schedule)
    put(kind, script.organisation, {schedule.pk: None})
    assert not Schedule.objects.exists()

    before = timezone.now()
    put(kind, script.organisation, {schedule.pk: state})

    restored = Schedule.objects.get(pk=schedule.pk)
    assert state_of(restored) == state
    assert restored.next_tick_at is not None
    assert before < restored.next_tick_at <= timezone.now() + timedelta(minutes=1)


def test_what_is_left_out_keeps_its_default(script: Script, kind: Kind) -> None:
    schedule_id = uuid.uuid4()
    state = {"script": str(script.pk), "name": "nightly", "cron": "0 0 * * *"}

    put(kind, script.organisation, {schedule_id: state})

    as_created = create_schedule(script, name="other", cron="0 0 * * *")
    assert state_of(Schedule.objects.get(pk=schedule_id)) == state_of(as_created) | state


def test_names_are_swapped_in_one_release(script: Script, kind: Kind) -> None:
    first, second = (create_schedule(script, name=name, cron="* * * * *") for name in "ab")
    swapped = {
        first.pk: state_of(first) | {"name": "b"},
        second.pk: state_of(second) | {"name": "a"},
    }

    put(kind, script.organisation, swapped)

    first.refresh_from_db()
    assert (first.name, first.name_key) == ("b", "b")


def test_a_buffered_tick_of_a_schedule_that_is_disabled_is_skipped(
    script: Script, kind: Kind
) -> None:
    schedule = create_schedule(script, cron="* * * * *")
    Schedule.objects.update(buffered_tick_at=timezone.now())

    put(kind, script.organisation, {schedule.pk: state_of(schedule) | {"enabled": False}})

    assert Schedule.objects.get().buffered_tick_at is None
    assert ScheduleTick.objects.get().outcome == "skipped-overlap"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Taken"},
        {"name": ""},
        {"name": None},
        {"cron": "every day"},
        {"cron": None},
        {"cron": 5},
        {"timeZone": "Mars"},
        {"payload": "x" * (64 * 1024 + 1)},
        {"payload": ["x"]},
        {"enabled": "yes"},
        {"overlap": "skip"},
        {"catchUp": "Some"},
        {"catchUpWindowSeconds": -1},
        {"catchUpWindowSeconds": 10**9},
        {"catchUpWindowSeconds": 1.5},
        {"script": str(uuid.uuid4())},
        {"script": None},
    ],
)
def test_a_wrong_state_is_refused_with_the_schedules_name_and_changes_nothing(
    script: Script, kind: Kind, wrong: dict[str, Any]
) -> None:
    create_schedule(script, name="taken", cron="* * * * *")
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *")
    other = {"script": str(script.pk), "name": "other", "cron": "* * * * *"}
    state = state_of(schedule) | wrong

    with pytest.raises(ValidationError) as refused:
        put(kind, script.organisation, {uuid.uuid4(): other, schedule.pk: state})

    assert all(message.startswith("Schedule “") for message in refused.value.messages)
    assert Schedule.objects.count() == 2
    assert state_of(Schedule.objects.get(pk=schedule.pk)) == state_of(schedule)
    assert releases().count() == 2


def test_schedules_over_the_limit_are_refused_together(
    script: Script, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "MAX_SCHEDULES", 2)
    create_schedule(script, name="first", cron="* * * * *")
    new = {
        uuid.uuid4(): {"script": str(script.pk), "name": name, "cron": "* * * * *"}
        for name in ("a", "b")
    }

    with pytest.raises(ValidationError, match="at most 2 schedules"):
        put(kind, script.organisation, new)

    assert Schedule.objects.count() == 1


def test_twenty_schedules_take_as_many_statements_as_two(script: Script, kind: Kind) -> None:
    schedules = [create_schedule(script, cron="0 0 * * *") for _ in range(20)]

    def statements_of(number: int, cron: str) -> int:
        states = {row.pk: state_of(row) | {"cron": cron} for row in schedules[:number]}
        with CaptureQueriesContext(connection) as statements:
            put(kind, script.organisation, states)
        return len(statements)

    assert statements_of(20, "0 1 * * *") == statements_of(2, "0 2 * * *")


def test_differences_are_in_words(script: Script, kind: Kind) -> None:
    schedule = create_schedule(script, name="nightly", cron="0 0 * * *")
    before = state_of(schedule)
    after = state_of(update_schedule(schedule, cron="0 1 * * *", overlap="buffer-one"))
    organisation = script.organisation

    assert kind.difference(organisation, before, after).splitlines() == [
        "When: 0 0 * * * (UTC) -> 0 1 * * * (UTC)",
        "While a run is in progress: Skip -> Buffer one",
    ]
    assert kind.difference(organisation, None, before).splitlines()[:3] == [
        "Name: nightly",
        f"Script: {script.name}",
        "When: 0 0 * * * (UTC)",
    ]
