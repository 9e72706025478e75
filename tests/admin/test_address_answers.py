"""The admin's forms tell of so many addresses an hour whether somebody has them."""

import pytest
from django.test import Client

from accounts.models import Membership, Organisation, User
from tests.accounts.test_address_answers import limited_events, use_up
from tests.admin.pages import list_of, nothing_inlined, page_of, text_of

pytestmark = pytest.mark.postgresql


def test_the_form_for_a_new_user_counts_too(
    acme: Organisation, as_bob: Client, charlie: User
) -> None:
    use_up(acme, but=1)
    typed = {"email": charlie.email, "name": "", "phone": "", "role": "member"}

    told = as_bob.post(list_of(User, "add"), {**typed, "organisation": str(acme.pk)})
    # Whatever organisation is typed.
    refused = as_bob.post(list_of(User, "add"), {**typed, "organisation": "x"})

    assert "A user with this e-mail already exists" in text_of(told)
    assert refused.status_code == 429
    assert 3500 < int(refused["Retry-After"]) <= 3600
    assert limited_events(acme) == 1


def test_a_form_that_saves_reveals_nothing(acme: Organisation, as_bob: Client) -> None:
    use_up(acme, but=1)
    typed = {"name": "", "phone": "", "role": "member", "organisation": str(acme.pk)}

    saved = [
        as_bob.post(list_of(User, "add"), {**typed, "email": f"new{n}@example.com"}).status_code
        for n in range(3)
    ]

    assert saved == [302] * 3


def test_each_address_typed_among_the_members_counts(acme: Organisation, as_bob: Client) -> None:
    use_up(acme, but=3)
    members = list(Membership.objects.filter(organisation=acme))
    form = {
        "name": acme.name,
        "memberships-TOTAL_FORMS": "3",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(members[0].pk),
        "memberships-0-role": members[0].role,
        "memberships-1-email": "nobody@example.com",
        "memberships-1-role": "member",
        "memberships-2-email": "nobody2@example.com",
        "memberships-2-role": "member",
    }

    told = as_bob.post(page_of(acme), form)
    refused = as_bob.post(page_of(acme), form)

    assert text_of(told).count("There is no user with this e-mail yet") == 2
    assert refused.status_code == 429
    assert limited_events(acme) == 1


def test_other_changes_of_a_user_are_saved_as_before(
    acme: Organisation, as_bob: Client, alice: User
) -> None:
    use_up(acme)
    form = {"email": alice.email, "name": "Alicia", "phone": "", "is_active": "on"}

    saved = as_bob.post(page_of(alice), form | nothing_inlined())

    assert saved.status_code == 302
    alice.refresh_from_db()
    assert alice.name == "Alicia"


def test_an_address_that_is_right_counts_where_something_else_is_wrong(
    acme: Organisation, as_bob: Client, charlie: User
) -> None:
    use_up(acme, but=1)
    members = list(Membership.objects.filter(organisation=acme))
    form = {
        "name": "",
        "memberships-TOTAL_FORMS": "2",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(members[0].pk),
        "memberships-0-role": members[0].role,
        "memberships-1-email": charlie.email,
        "memberships-1-role": "none of them",
    }

    told = as_bob.post(page_of(acme), form)
    refused = as_bob.post(page_of(acme), form)

    assert told.status_code == 200
    assert refused.status_code == 429


def test_an_invalid_address_reveals_nothing(acme: Organisation, as_bob: Client) -> None:
    use_up(acme, but=1)
    typed = {"email": "no address", "name": "", "phone": "", "role": "member"}
    form = {**typed, "organisation": str(acme.pk)}

    assert [as_bob.post(list_of(User, "add"), form).status_code for _ in range(3)] == [200] * 3
