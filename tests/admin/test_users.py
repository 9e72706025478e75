import re
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Organisation, PinChallenge, Role, User
from tests import factories
from tests.admin.pages import list_of, nothing_inlined, page_of, text_of


def profile(user: User, **changes: str) -> dict[str, str]:
    """The data that the user's form posts, with changes."""
    form = {"email": user.email, "name": user.name, "phone": user.phone, "is_active": "on"}
    return form | nothing_inlined() | changes


def password_page(user: User) -> str:
    return reverse("admin:auth_user_password_change", args=[user.pk])


def new_user(organisation: Organisation | None, **changes: str) -> dict[str, Any]:
    return {
        "email": "New@Example.com",
        "name": "New",
        "phone": "",
        "organisation": "" if organisation is None else str(organisation.pk),
        "role": "member",
        **changes,
    }


def test_bob_adds_a_user_to_his_organisation(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(User, "add"), new_user(acme, role="administrator"))

    user = User.objects.get(email="new@example.com")
    assert response.status_code == 302
    assert response["Location"] == page_of(user)
    assert user.delivery_email == "New@Example.com"
    assert user.memberships.get().role == Role.ADMINISTRATOR
    assert not user.is_staff


def test_bob_has_to_choose_an_organisation_for_a_new_user(as_bob: Client) -> None:
    response = as_bob.post(list_of(User, "add"), new_user(None))

    assert response.status_code == 200
    assert "This field is required" in text_of(response)
    assert not User.objects.filter(email="new@example.com").exists()


def test_root_adds_a_user_to_no_organisation(as_root: Client) -> None:
    response = as_root.post(list_of(User, "add"), new_user(None))

    assert response.status_code == 302
    assert User.objects.get(email="new@example.com").sole_organisation() is None


def test_a_known_email_in_another_spelling_is_refused_at_the_field(
    as_bob: Client, acme: Organisation, charlie: User
) -> None:
    response = as_bob.post(
        list_of(User, "add"), new_user(acme, email="CHARLIE@example.org ", name="Mine")
    )

    assert response.status_code == 200
    assert "A user with this e-mail already exists" in text_of(response)
    assert not acme.memberships.filter(user=charlie).exists()


def test_changing_the_phone_of_alice_cancels_codes_already_sent(
    as_bob: Client, alice: User
) -> None:
    factories.make_pin(alice)

    response = as_bob.post(page_of(alice), profile(alice, phone="+49 170 0000000"))

    assert response.status_code == 302
    alice.refresh_from_db()
    assert alice.phone == "+491700000000"
    assert PinChallenge.objects.open_for(alice.email) is None


def test_a_wrong_phone_is_refused_at_the_field(as_bob: Client, alice: User) -> None:
    response = as_bob.post(page_of(alice), profile(alice, phone="0170"))

    assert response.status_code == 200
    assert "Enter the number with its country code" in text_of(response)
    alice.refresh_from_db()
    assert alice.phone == "+491701234567"


def test_bob_deactivates_alice(as_bob: Client, alice: User) -> None:
    response = as_bob.post(page_of(alice), profile(alice, is_active=""))

    assert response.status_code == 302
    alice.refresh_from_db()
    assert not alice.is_active
    assert alice.sessions_valid_after is not None


def test_bob_cannot_make_a_user_staff_or_superuser(as_bob: Client, alice: User) -> None:
    form = profile(alice, name="Alicia", is_staff="on", is_superuser="on")
    page = text_of(as_bob.get(page_of(alice)))

    response = as_bob.post(page_of(alice), form)

    assert response.status_code == 302
    alice.refresh_from_db()
    assert alice.name == "Alicia"
    assert 'name="is_staff"' not in page
    assert 'name="is_superuser"' not in page
    assert not alice.is_staff
    assert not alice.is_superuser


def test_root_makes_alice_staff(as_root: Client, alice: User) -> None:
    response = as_root.post(page_of(alice), profile(alice, is_staff="on"))

    assert response.status_code == 302
    alice.refresh_from_db()
    assert alice.is_staff
    assert not alice.is_superuser


def test_bob_sees_only_the_email_of_a_shared_user(as_bob: Client, dora: User) -> None:
    page, users = text_of(as_bob.get(page_of(dora))), text_of(as_bob.get(list_of(User)))

    assert "dora@example.com" in page
    assert "dora@example.com" in users
    assert "Dora" not in users
    assert "+491709999999" not in page
    assert "Globex" not in page
    assert 'name="memberships-INITIAL_FORMS" value="1"' in page


def test_bob_does_not_find_a_shared_user_by_name(as_bob: Client, alice: User, dora: User) -> None:
    dora.name = "Secretive"
    dora.save()

    assert "alice@example.com" in text_of(as_bob.get(list_of(User), {"q": "Alice"}))
    assert "dora@example.com" not in text_of(as_bob.get(list_of(User), {"q": "Secretive"}))


def test_bob_cannot_change_the_profile_of_a_shared_user(as_bob: Client, dora: User) -> None:
    form = profile(dora, email="bob2@example.com", phone="+491705555555", is_active="")

    response = as_bob.post(page_of(dora), form)

    assert response.status_code == 302
    before = (dora.email, dora.phone, dora.is_active)
    dora.refresh_from_db()
    assert (dora.email, dora.phone, dora.is_active) == before


def test_bob_cannot_set_the_password_of_a_shared_user(as_bob: Client, dora: User) -> None:
    form = {"password1": "a long enough one", "password2": "a long enough one"}

    response = as_bob.post(password_page(dora), form)

    assert response.status_code == 403
    dora.refresh_from_db()
    assert not dora.has_usable_password()


def test_bob_cannot_touch_a_superuser_who_is_a_member(
    as_bob: Client, acme: Organisation, root: User
) -> None:
    root.memberships.create(organisation=acme)

    as_bob.post(page_of(root), profile(root, email="bob2@example.com"))
    password = as_bob.post(password_page(root), {"password1": "x" * 12, "password2": "x" * 12})

    assert password.status_code == 403
    root.refresh_from_db()
    assert root.email == "root@example.com"
    assert root.check_password("a password of root")


def test_bob_changes_the_role_of_a_shared_user_in_his_organisation(
    as_bob: Client, acme: Organisation, globex: Organisation, dora: User
) -> None:
    membership = acme.memberships.get(user=dora)
    inline = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(membership.pk),
        "memberships-0-user": str(dora.pk),
        "memberships-0-role": "administrator",
    }

    response = as_bob.post(page_of(dora), inline)

    assert response.status_code == 302
    assert acme.memberships.get(user=dora).role == Role.ADMINISTRATOR
    assert globex.memberships.get(user=dora).role == Role.MEMBER


def test_bob_cannot_change_a_role_in_globex(
    as_bob: Client, globex: Organisation, dora: User
) -> None:
    membership = globex.memberships.get(user=dora)
    inline = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(membership.pk),
        "memberships-0-user": str(dora.pk),
        "memberships-0-role": "administrator",
    }

    response = as_bob.post(page_of(dora), inline)

    assert response.status_code == 200
    membership.refresh_from_db()
    assert membership.role == Role.MEMBER


def test_bob_cannot_make_anybody_a_member_of_globex(
    as_bob: Client, globex: Organisation, alice: User
) -> None:
    inline = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-organisation": str(globex.pk),
        "memberships-0-role": "administrator",
    }

    response = as_bob.post(page_of(alice), {**profile(alice), **inline})

    assert response.status_code == 200
    assert not globex.memberships.filter(user=alice).exists()


def test_bob_sets_the_password_of_his_own_user(as_bob: Client, alice: User) -> None:
    form = {
        "password1": "a long enough one",
        "password2": "a long enough one",
        "usable_password": "true",
    }

    response = as_bob.post(password_page(alice), form)

    assert response.status_code == 302
    alice.refresh_from_db()
    assert alice.check_password("a long enough one")
    assert "long enough" not in str(list(LogEntry.objects.values()))


def test_the_history_of_a_user_is_for_superusers(
    as_root: Client, as_bob: Client, alice: User
) -> None:
    assert as_root.get(page_of(alice, "history")).status_code == 200
    assert as_bob.get(page_of(alice, "history")).status_code == 403
    assert page_of(alice, "history") not in text_of(as_bob.get(page_of(alice)))


def test_no_password_hash_is_shown(as_root: Client, alice: User) -> None:
    alice.set_password("a long enough one")
    alice.save()

    text = text_of(as_root.get(page_of(alice)))

    assert "Set" in text
    assert "pbkdf2" not in text


def test_the_page_lists_devices_and_sessions(as_bob: Client, alice: User) -> None:
    issued = factories.make_device_token(alice, label="alice's laptop")
    factories.open_session(factories.device_login(issued))

    text = text_of(as_bob.get(page_of(alice)))

    assert page_of(issued.device_token, "revoke") in text
    assert page_of(issued.device_token.sessions.get(), "end") in text


def test_devices_of_a_shared_user_are_listed_for_root_only(
    as_root: Client, as_bob: Client, dora: User
) -> None:
    device = factories.make_device_token(dora, label="dora's laptop").device_token

    assert page_of(device) in text_of(as_root.get(page_of(dora)))
    assert page_of(device) not in text_of(as_bob.get(page_of(dora)))
    assert as_bob.get(page_of(device)).status_code == 404


def test_page_looks_its_user_up_once(as_bob: Client, alice: User) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert as_bob.get(page_of(alice)).status_code == 200

    look_ups = [query["sql"] for query in queries if 'AS "is_own"' in query["sql"]]
    assert len(look_ups) == 1


def test_the_list_marks_staff_and_no_fault_of_others(
    as_bob: Client, bob: User, alice: User
) -> None:
    rows = as_bob.get(list_of(User)).content.decode().split("<tr")
    staff = {
        user.email: cell[1].strip()
        for user in (bob, alice)
        for row in rows
        if user.email in row
        and (cell := re.search(r"field-shown_staff[^>]*>(.*?)</td>", row, re.DOTALL))
    }

    assert staff == {bob.email: "Yes", alice.email: ""}


# --- The list -------------------------------------------------------------------------------------


def cells_of(response: Any, column: str) -> list[str]:
    return re.findall(rf'class="field-{column} [^>]*>(.*?)</td>', text_of(response))


def test_the_list_names_the_organisation_and_role_of_each_user(
    as_bob: Client, alice: User, acme: Organisation
) -> None:
    response = as_bob.get(list_of(User))

    assert cells_of(response, "shown_organisations") == ["Acme", "Acme"]
    assert set(cells_of(response, "shown_roles")) == {"Administrator", "Member"}


def test_memberships_elsewhere_are_not_named(
    as_bob: Client, as_root: Client, dora: User, acme: Organisation
) -> None:
    of_bob = as_bob.get(list_of(User), {"q": "dora"})
    of_root = as_root.get(list_of(User), {"q": "dora"})

    assert cells_of(of_bob, "shown_organisations") == ["Acme"]
    assert cells_of(of_root, "shown_organisations") == ["Acme<br>Globex"]
    assert cells_of(of_root, "shown_roles") == ["Member<br>Member"]


def test_of_many_memberships_the_first_are_named(as_root: Client, alice: User) -> None:
    for number in range(5):
        alice.memberships.create(organisation=factories.make_organisation(f"B{number}"))

    response = as_root.get(list_of(User), {"q": "alice"})

    assert cells_of(response, "shown_organisations") == ["Acme<br>B0<br>B1<br>and 3 more"]


def test_the_list_of_users_takes_no_query_a_user(as_bob: Client, acme: Organisation) -> None:
    address = list_of(User)
    as_bob.get(address)
    with CaptureQueriesContext(connection) as few:
        as_bob.get(address)
    for number in range(4):
        factories.make_user(acme, f"user{number}@example.com")

    with CaptureQueriesContext(connection) as many:
        as_bob.get(address)

    # Two of them are of the person who looks at the list.
    assert len(many) == len(few) == 6
