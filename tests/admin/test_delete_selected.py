"""*Delete selected* in lists: one release of all that was selected, or nothing."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import AuthEvent, Organisation
from hooks.models import Hook
from jobs.models import Schedule
from jobs.schedules.schedules import create_schedule
from scripts_engine.flows.scripts import create_script
from scripts_engine.models import Release, Script
from tests.admin.pages import action_on, list_of, text_of
from tests.factories import NOBODY, make_hook, make_script

MAKERS: dict[str, Callable[[Organisation, str], Any]] = {
    "script": lambda place, name: make_script(place, "return 1", name),
    "hook": lambda place, name: make_hook(make_script(place, "return 1", name), name).hook,
    "schedule": lambda place, name: create_schedule(
        make_script(place, "return 1", name), name=name, cron="0 0 * * *"
    ),
}
by_kind = pytest.mark.parametrize("kind", MAKERS)


def delete_selected(client: Client, *rows: Any) -> Any:
    body = action_on(rows[0], "delete_selected_by_flow")
    body["_selected_action"] = [str(row.pk) for row in rows]
    return client.post(list_of(type(rows[0])), body, follow=True)


def existing(model: Any) -> list[str]:
    rows = model.objects if model is Schedule else model.objects.existing()
    return sorted(rows.values_list("name", flat=True))


@by_kind
def test_selected_rows_are_deleted_as_one_release(
    as_bob: Client, acme: Organisation, kind: str
) -> None:
    first, second, kept = (MAKERS[kind](acme, f"{kind} {number}") for number in range(3))
    releases = Release.objects.count()

    text = text_of(delete_selected(as_bob, first, second))

    assert existing(type(kept)) == [kept.name]
    assert Release.objects.count() == releases + 1
    changes = Release.objects.order_by("number").last().changes.all()  # type: ignore[union-attr]
    assert {(row.object_id, row.action) for row in changes} == {
        (first.pk, "Delete"),
        (second.pk, "Delete"),
    }
    assert first.name in text
    assert second.name in text
    assert LogEntry.objects.count() == 2


@by_kind
def test_selected_rows_of_two_organisations_are_a_release_of_each(
    as_root: Client, acme: Organisation, globex: Organisation, kind: str
) -> None:
    ours, theirs = MAKERS[kind](acme, f"our {kind}"), MAKERS[kind](globex, f"their {kind}")
    before = [Release.objects.of_organisation(place).count() for place in (acme, globex)]

    delete_selected(as_root, ours, theirs)

    assert existing(type(ours)) == []
    after = [Release.objects.of_organisation(place).count() for place in (acme, globex)]
    assert after == [count + 1 for count in before]


def test_scripts_are_not_deleted_if_one_of_them_is_a_library_that_others_require(
    as_bob: Client, acme: Organisation
) -> None:
    money = create_script(acme, name="money", source="return {}", author=NOBODY, is_library=True)
    orders = make_script(acme, 'return require("money")', "orders")
    other = make_script(acme, "return 1", "other")
    releases, events = Release.objects.count(), AuthEvent.objects.count()

    text = text_of(delete_selected(as_bob, other, money))

    assert "Nothing was deleted." in text
    assert "cannot be deleted while scripts require it" in text
    assert existing(Script) == ["money", "orders", "other"]
    assert (Release.objects.count(), AuthEvent.objects.count()) == (releases, events)
    assert not LogEntry.objects.exists()

    delete_selected(as_bob, other, money, orders)
    assert existing(Script) == []
    assert Release.objects.count() == releases + 1


def test_selected_scripts_take_their_hooks_with_them_in_their_release(
    as_bob: Client, acme: Organisation
) -> None:
    scripts = [make_hook(make_script(acme, "return 1", name)).hook.script for name in "ab"]

    delete_selected(as_bob, *scripts)

    assert existing(Hook) == []
    last = Release.objects.order_by("number").last()
    assert last is not None
    assert sorted(last.changes.values_list("kind", flat=True)) == [
        "Hook",
        "Hook",
        "Script",
        "Script",
    ]
