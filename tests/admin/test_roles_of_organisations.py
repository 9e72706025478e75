"""Roles count by organisation, and from the next request on."""

from typing import Any

import pytest

from accounts.flows.organisations import remove_member
from accounts.flows.users import update_user
from accounts.models import Membership, Organisation, Role, User
from hooks.models import Hook
from jobs.admin.dead_letters import page_of_replays
from jobs.queue.replay import replay_runs
from scripts_engine.models import Run, Script, Secret
from scripts_engine.runs.spec import Author
from tests import factories
from tests.admin.pages import list_of, logged_in, page_of, text_of
from tests.admin.roles import (
    make_staff,
    page_admin,
)
from tests.one_of_each import one_of_each
from tests.written import nothing_written


@pytest.fixture
def rows(acme: Organisation) -> dict[type, Any]:
    return one_of_each(acme)


# --- Two organisations ----------------------------------------------------------------------------


@pytest.fixture
def both(acme: Organisation, globex: Organisation) -> User:
    """A Viewer of Acme and an Author of Globex."""
    user = make_staff(acme, Role.VIEWER)
    Membership.objects.create(organisation=globex, user=user, role=Role.AUTHOR)
    return user


def test_each_row_counts_by_its_own_organisation(
    both: User, rows: dict[type, Any], globex: Organisation
) -> None:
    client = logged_in(both)
    theirs = one_of_each(globex)

    with nothing_written():
        refused = client.post(page_of(rows[Hook], "disable"), {"confirmed": "yes"})
        payload = client.get(page_of(rows[Run]))
    allowed = client.post(page_of(theirs[Hook], "disable"), {"confirmed": "yes"})

    assert refused.status_code == 403
    assert "role Author or Administrator in Acme" in text_of(refused)
    assert "Acme payload" not in text_of(payload)
    assert allowed.status_code == 302
    assert Hook.objects.get(pk=theirs[Hook].pk).is_enabled is False


def test_list_action_on_rows_of_both_changes_none(
    both: User, rows: dict[type, Any], globex: Organisation
) -> None:
    client, theirs = logged_in(both), one_of_each(globex)
    chosen = [str(rows[Hook].pk), str(theirs[Hook].pk)]
    form = {"action": "disable_selected", "_selected_action": chosen}

    with nothing_written():
        response = client.post(list_of(Hook), form)

    assert response.status_code == 403


def test_script_is_not_made_in_the_organisation_where_one_only_looks(
    both: User, acme: Organisation, globex: Organisation
) -> None:
    client = logged_in(both)
    form = {"name": "new", "source": "return 1", "timeout_seconds": "5", "is_enabled": "on"}

    refused = client.post(list_of(Script, "add"), {**form, "organisation": str(acme.pk)})
    none_yet = Script.objects.exists()
    client.post(list_of(Script, "add"), {**form, "organisation": str(globex.pk)})

    assert (refused.status_code, none_yet) == (200, False)
    assert Script.objects.get().organisation == globex


# --- Counting at once -----------------------------------------------------------------------------


def test_lowered_role_counts_at_the_next_request(acme: Organisation, rows: dict[type, Any]) -> None:
    author = make_staff(acme, Role.AUTHOR)
    client = logged_in(author)
    before = client.get(list_of(Secret)).status_code
    update_user(acme, author, role=Role.VIEWER)

    with nothing_written():
        saved = client.post(page_of(rows[Script]), {"name": "late", "source": "return 2"})

    assert before == 200
    assert client.get(list_of(Secret)).status_code == 403
    assert saved.status_code == 403


def test_removed_member_reads_no_second_page_of_a_list(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(page_admin(Script)), "list_per_page", 1)
    for number in range(2):
        factories.make_script(acme, "return 1", f"script {number}")
    viewer = make_staff(acme, Role.VIEWER)
    client = logged_in(viewer)
    first = client.get(list_of(Script), {"p": "1"})
    remove_member(acme, viewer)
    second = client.get(list_of(Script), {"p": "2"})

    assert "script 1" in text_of(first)
    assert second.status_code == 403
    assert "script 0" not in text_of(second)


@pytest.mark.parametrize(
    "actions", [["disable_selected", ""], ["", "disable_selected"], ["disable_selected"] * 2]
)
def test_list_action_beside_another_changes_nothing(
    both: User, rows: dict[type, Any], actions: list[str]
) -> None:
    client = logged_in(both)
    form = {"action": actions, "index": "0", "_selected_action": str(rows[Hook].pk)}

    with nothing_written():
        response = client.post(list_of(Hook), form)

    assert response.status_code == 400


def test_replays_of_an_organisation_where_one_only_looks_are_not_cancelled(
    both: User, acme: Organisation, rows: dict[type, Any]
) -> None:
    """They are from when the person had the role."""
    author, client = Author(user=both), logged_in(both)
    replays = replay_runs([rows[Run]], author=author)
    address = page_of_replays(replays)
    cancel = address.replace(list_of(Run, "replays"), list_of(Run, "replays_cancel"))

    client.post(cancel)
    before = Run.objects.get(pk=replays[0]).status
    Membership.objects.filter(organisation=acme, user=both).update(role=Role.OPERATOR)
    client.post(cancel)

    assert (before, Run.objects.get(pk=replays[0]).status) == ("queued", "cancelled")
