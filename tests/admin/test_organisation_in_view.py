"""The organisation in view narrows lists and home, and gives nobody anything."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Membership, Organisation, Role, User
from hooks.models import Hook
from jobs.models import Message
from scripts_engine.models import Run, Script
from tests.admin.addresses import REGISTERED
from tests.admin.pages import OUR_MODELS, list_of, logged_in, page_of, text_of
from tests.admin.roles import make_staff
from tests.factories import make_organisation
from tests.one_of_each import one_of_each

SWITCH = reverse("admin:organisation_switch")
HOME = reverse("admin:index")


@pytest.fixture
def acme_rows(acme: Organisation) -> dict[type, Any]:
    return one_of_each(acme)


def look_at(client: Client, organisation: Organisation | None) -> Any:
    return client.post(SWITCH, {"organisation": "" if organisation is None else organisation.pk})


def rows_in(client: Client, model: type[Any]) -> set[Any]:
    response = client.get(list_of(model))
    assert response.status_code == 200
    return {row.pk for row in response.context["cl"].result_list}


@pytest.fixture
def both(acme: Organisation, globex: Organisation) -> User:
    """A Viewer of Acme and an Administrator of Globex."""
    user = make_staff(acme, Role.VIEWER)
    Membership.objects.create(organisation=globex, user=user, role=Role.ADMINISTRATOR)
    return user


def test_lists_of_a_superuser_show_what_its_administrator_would_see(
    as_root: Client,
    as_bob: Client,
    acme: Organisation,
    acme_rows: dict[type, Any],
    globex_objects: dict[type, Any],
) -> None:
    assert look_at(as_root, acme).status_code == 302

    listed = [model for model in REGISTERED if model in OUR_MODELS]
    shown = {model: rows_in(as_root, model) for model in listed}
    of_bob = {model: rows_in(as_bob, model) for model in listed}
    assert shown == of_bob
    assert Message not in listed
    assert shown[Script]


def test_home_counts_its_rows_alone(
    as_root: Client,
    acme: Organisation,
    acme_rows: dict[type, Any],
    globex_objects: dict[type, Any],
) -> None:
    everything = as_root.get(HOME).context["home"].counts
    look_at(as_root, acme)
    narrowed = as_root.get(HOME)

    counts = {count.title: count.number for count in narrowed.context["home"].counts}
    assert counts["organisations"] == "1"
    assert {count.title: count.number for count in everything}["organisations"] == "2"
    assert "Only Acme is shown." in text_of(narrowed)


def test_pages_of_single_rows_open_as_before(
    as_root: Client, acme: Organisation, globex_objects: dict[type, Any]
) -> None:
    look_at(as_root, acme)

    for model in (Script, Hook, Run):
        response = as_root.get(page_of(globex_objects[model]))
        assert response.status_code == 200
        assert "is shown." not in text_of(response)


def test_all_organisations_again(
    as_root: Client,
    acme: Organisation,
    acme_rows: dict[type, Any],
    globex_objects: dict[type, Any],
) -> None:
    look_at(as_root, acme)
    look_at(as_root, None)

    assert rows_in(as_root, Script) >= {acme_rows[Script].pk, globex_objects[Script].pk}


def test_a_member_of_two_sees_one_by_the_role_there(
    both: User,
    acme: Organisation,
    globex: Organisation,
    acme_rows: dict[type, Any],
    globex_objects: dict[type, Any],
) -> None:
    client = logged_in(both)
    look_at(client, globex)
    of_globex = rows_in(client, Script)
    look_at(client, acme)

    assert globex_objects[Script].pk in of_globex
    assert acme_rows[Script].pk not in of_globex
    assert acme_rows[Script].pk in rows_in(client, Script)
    assert rows_in(client, User) == set()


def test_new_rows_are_offered_in_the_organisation_in_view(
    as_root: Client, acme: Organisation, globex: Organisation
) -> None:
    look_at(as_root, globex)

    form = as_root.get(list_of(Script, "add")).context["adminform"].form
    assert form.initial["organisation"] == globex.pk


def test_nobody_looks_at_an_organisation_out_of_reach(
    both: User, acme: Organisation, acme_rows: dict[type, Any]
) -> None:
    client = logged_in(both)
    foreign = make_organisation("Initech")
    one_of_each(foreign)

    response = look_at(client, foreign)

    assert response["Location"] == SWITCH
    assert "There is no such organisation." in text_of(client.get(SWITCH))
    assert "organisation_in_view" not in client.session
    assert "Initech" not in text_of(client.get(SWITCH))


@pytest.mark.parametrize("kept", ["of-another", "unknown", "malformed"])
def test_a_choice_that_does_not_count_any_more_shows_all(
    both: User, acme_rows: dict[type, Any], kept: str
) -> None:
    foreign = make_organisation("Initech")
    one_of_each(foreign)
    values = {
        "of-another": str(foreign.pk),
        "unknown": "00000000-0000-4000-8000-000000000000",
        "malformed": "Acme",
    }
    client = logged_in(both)
    session = client.session
    session["organisation_in_view"] = values[kept]
    session.save()

    shown = rows_in(client, Script)

    assert acme_rows[Script].pk in shown
    assert not shown & set(Script.objects.filter(organisation=foreign).values_list("pk", flat=True))


def test_the_choice_ends_with_the_role(
    both: User, acme: Organisation, globex: Organisation, acme_rows: dict[type, Any]
) -> None:
    client = logged_in(both)
    look_at(client, globex)
    Membership.objects.filter(user=both, organisation=globex).delete()

    assert rows_in(client, Script) == {acme_rows[Script].pk}


@pytest.mark.parametrize("value", ["Acme", "0" * 32, "'"])
def test_malformed_choices_change_nothing(as_root: Client, acme: Organisation, value: str) -> None:
    look_at(as_root, acme)

    assert as_root.post(SWITCH, {"organisation": value})["Location"] == SWITCH
    assert as_root.session["organisation_in_view"] == str(acme.pk)


def test_who_reaches_one_organisation_has_no_switch(as_bob: Client, as_erin: Client) -> None:
    answers = [client.get(SWITCH) for client in (as_bob, as_erin)]
    answers.append(as_bob.post(SWITCH, {"organisation": ""}))

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert SWITCH not in text_of(as_bob.get(HOME))


def test_organisations_are_found_by_name(
    as_root: Client, acme: Organisation, globex: Organisation
) -> None:
    text = text_of(as_root.get(SWITCH, {"q": "GLOB"}))

    assert "Globex" in text
    assert "Acme" not in text


def test_a_list_asks_once_more_at_most(
    as_root: Client, acme: Organisation, acme_rows: dict[type, Any]
) -> None:
    as_root.get(list_of(Script))
    with CaptureQueriesContext(connection) as all_of_them:
        as_root.get(list_of(Script))
    look_at(as_root, acme)
    with CaptureQueriesContext(connection) as one_of_them:
        as_root.get(list_of(Script))

    assert len(one_of_them) <= len(all_of_them) + 1
