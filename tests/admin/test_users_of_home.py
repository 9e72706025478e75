"""Only a user's home manages the profile, even when the user joins other organisations."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from accounts.flows.api_keys import issue_api_key
from accounts.flows.organisations import add_member, remove_member
from accounts.flows.users import update_user
from accounts.models import AuthEvent, Invitation, Organisation, Role, User
from scripts_engine.models import Script, ScriptVersion
from tests import factories
from tests.admin.pages import CONFIRMED, list_of, logged_in, page_of, text_of
from tests.admin.test_users import password_page, profile
from tests.factories import admin_graphql

PASSWORD = {"password1": "a long enough one", "password2": "a long enough one"}
PASSWORD |= {"usable_password": "true"}


@pytest.fixture
def frank(acme: Organisation, globex: Organisation) -> User:
    """A user of Acme, bob's organisation, who is also a member of Globex."""
    frank = factories.make_user(acme, "frank@example.com", name="Frank", phone="+491708888888")
    frank.memberships.create(organisation=globex)
    return frank


@pytest.fixture
def let_go(acme: Organisation, globex: Organisation) -> User:
    """A user created and removed by Globex, now a member of Acme."""
    user = factories.make_user(globex, "gina@example.com", name="Gina", phone="+491707777777")
    remove_member(globex, user)
    user.memberships.create(organisation=acme)
    return user


def row_of(user: User) -> dict[str, Any]:
    return User.objects.values().get(pk=user.pk)


def test_the_profile_of_a_user_without_home_is_hidden(as_bob: Client, let_go: User) -> None:
    device = factories.make_device_token(let_go, label="gina's phone").device_token

    page, users = text_of(as_bob.get(page_of(let_go))), text_of(as_bob.get(list_of(User)))

    assert "gina@example.com" in page
    assert [text for text in ("Gina", "+491707777777") if text in users] == []
    assert [text for text in ("+491707777777", page_of(device)) if text in page] == []
    assert 'name="phone"' not in page


def test_the_password_of_a_user_without_home_cannot_be_set(as_bob: Client, let_go: User) -> None:
    before = row_of(let_go)

    asked = as_bob.get(password_page(let_go))
    response = as_bob.post(password_page(let_go), PASSWORD)
    as_bob.post(page_of(let_go), profile(let_go, phone="+491700000000", name="Mine"))

    assert (asked.status_code, response.status_code) == (403, 403)
    assert row_of(let_go) == before


def test_bob_sees_and_renames_his_user_who_joined_another_organisation(
    as_bob: Client, frank: User
) -> None:
    page = text_of(as_bob.get(page_of(frank)))
    response = as_bob.post(page_of(frank), profile(frank, name="Francis", is_active=""))

    assert "+491708888888" in page
    assert "is also a member of another organisation" in page
    assert 'name="phone"' not in page
    assert 'name="email"' not in page
    assert response.status_code == 302
    assert (row_of(frank)["name"], row_of(frank)["is_active"]) == ("Francis", False)


def test_bob_cannot_change_credentials_of_his_user_who_joined_another_organisation(
    as_bob: Client, frank: User
) -> None:
    before = row_of(frank)

    as_bob.post(page_of(frank), profile(frank, phone="+491700000000", email="bob2@example.com"))
    password = as_bob.post(password_page(frank), PASSWORD)

    assert password.status_code == 403
    assert row_of(frank) == before
    assert password_page(frank) not in text_of(as_bob.get(page_of(frank)))


def test_bob_ends_devices_and_sessions_of_his_user_who_joined_another_organisation(
    as_bob: Client, frank: User
) -> None:
    issued = factories.make_device_token(frank)
    factories.open_session(factories.device_login(issued))
    session = issued.device_token.sessions.get()

    as_bob.post(page_of(session, "end"), CONFIRMED)
    as_bob.post(page_of(issued.device_token, "revoke"), CONFIRMED)

    assert issued.device_token.sessions.count() == 0
    assert not factories.is_accepted(issued)


def test_an_invitation_of_another_organisation_takes_nothing_from_bob(
    as_bob: Client, globex: Organisation, alice: User
) -> None:
    add_member(globex, email=alice.email)

    page = text_of(as_bob.get(page_of(alice)))
    response = as_bob.post(page_of(alice), profile(alice, phone="+491700000000"))
    password = as_bob.post(password_page(alice), PASSWORD)

    assert "Globex" not in page
    assert (response.status_code, password.status_code) == (302, 302)
    assert row_of(alice)["phone"] == "+491700000000"


def test_an_invited_user_has_no_page_for_the_organisation_that_invites(
    as_bob: Client, acme: Organisation, charlie: User
) -> None:
    invitation = add_member(acme, email=charlie.email)
    User.objects.filter(pk=charlie.pk).update(email="changed@example.org", name="Secretive")

    page = text_of(as_bob.get(page_of(invitation)))

    assert as_bob.get(page_of(charlie)).status_code == 404
    assert "charlie@example.org" in page
    hidden = ("changed@example.org", "Secretive", str(charlie.pk))
    assert [text for text in hidden if text in page] == []
    assert "charlie" not in text_of(as_bob.get(list_of(User)))


@pytest.mark.parametrize("filters", [{"is_staff__exact": "1"}, {"is_active__exact": "0"}])
def test_no_filter_reveals_fields_reserved_to_home(
    as_bob: Client, dora: User, filters: dict[str, str]
) -> None:
    User.objects.filter(pk=dora.pk).update(is_staff=True, is_active=False)

    filtered = text_of(as_bob.get(list_of(User), filters))

    assert "dora@example.com" not in filtered
    assert "dora@example.com" in text_of(as_bob.get(list_of(User)))


@pytest.mark.parametrize("column", ["1", "2", "3", "4", "-4"])
def test_no_sorting_reveals_fields_reserved_to_home(
    as_bob: Client, dora: User, column: str
) -> None:
    response = as_bob.get(list_of(User), {"o": column})

    assert response.status_code == 400
    assert "dora@example.com" not in text_of(response)


def test_a_membership_added_on_a_users_page_is_an_invitation(
    as_root: Client, globex: Organisation, acme: Organisation, alice: User
) -> None:
    home = acme.memberships.get(user=alice)
    inline = {
        "memberships-TOTAL_FORMS": "2",
        "memberships-INITIAL_FORMS": "1",
        "memberships-0-id": str(home.pk),
        "memberships-0-user": str(alice.pk),
        "memberships-0-role": "member",
        "memberships-1-user": str(alice.pk),
        "memberships-1-organisation": str(globex.pk),
        "memberships-1-role": "administrator",
    }

    response = as_root.post(page_of(alice), {**profile(alice), **inline})

    assert response.status_code == 302
    assert globex.invitations.get(user=alice).role == "administrator"
    assert alice.memberships.get() == home
    assert page_of(globex.invitations.get(), "withdraw") in text_of(as_root.get(page_of(alice)))


def test_a_superuser_cannot_be_invited(as_root: Client, globex: Organisation, root: User) -> None:
    inline = {
        "memberships-TOTAL_FORMS": "1",
        "memberships-INITIAL_FORMS": "0",
        "memberships-0-user": str(root.pk),
        "memberships-0-organisation": str(globex.pk),
        "memberships-0-role": "member",
    }
    form = profile(root, is_staff="on", is_superuser="on")

    response = as_root.post(page_of(root), {**form, **inline})

    assert response.status_code == 200
    assert "Superusers cannot be members of an organisation." in text_of(response)
    assert Invitation.objects.count() == 0


def test_changes_by_a_superuser_are_in_the_audit_of_the_home(
    as_root: Client, acme: Organisation, frank: User
) -> None:
    AuthEvent.objects.all().delete()
    as_root.post(page_of(frank), profile(frank, phone="+491700000000"))
    as_root.post(password_page(frank), PASSWORD)

    told = AuthEvent.objects.filter(organisation=acme).order_by("pk")
    assert [(event.kind, event.reason, event.email) for event in told] == [
        ("user.changed", "phone", "frank@example.com"),
        ("password.set", "", "frank@example.com"),
    ]


def test_the_audit_page_does_not_follow_a_user_who_has_left(
    as_bob: Client, acme: Organisation, let_go: User
) -> None:
    remove_member(acme, let_go)
    event = AuthEvent.objects.get(organisation=acme, kind="member.removed")
    User.objects.filter(pk=let_go.pk).update(email="changed@example.com")

    page = text_of(as_bob.get(page_of(event)))

    assert "gina@example.com" in page
    assert "changed@example.com" not in page


def test_bob_lists_invitations_of_his_organisation_only(
    as_bob: Client, acme: Organisation, globex: Organisation, alice: User, charlie: User
) -> None:
    add_member(acme, email=charlie.email)
    add_member(globex, email=alice.email)

    listed = text_of(as_bob.get(reverse("admin:accounts_invitation_changelist")))

    assert "charlie@example.org" in listed
    assert "alice@example.com" not in listed


def test_a_filter_by_two_organisations_reveals_no_other(
    as_bob: Client, bob: User, acme: Organisation, globex: Organisation
) -> None:
    initech = factories.make_organisation("Initech")
    bob.memberships.create(organisation=initech, role=Role.ADMINISTRATOR)
    hank = factories.make_user(initech, "hank@example.net")
    hank.memberships.create(organisation=globex)
    chosen = {"memberships__organisation__id__exact": [acme.pk, globex.pk]}

    page = text_of(as_bob.get(list_of(User), chosen))

    assert "hank@example.net" in text_of(as_bob.get(list_of(User)))
    assert "hank@example.net" not in page


@pytest.fixture
def renamed_by_dora(dora: User, acme: Organisation, acme_script: Script) -> Script:
    """A script of Acme, renamed in the admin by an administrator from another home."""
    update_user(acme, dora, role=Role.ADMINISTRATOR)
    dora.is_staff = True
    dora.save()
    values = {"name": "renamed", "timeout_seconds": "10", "is_enabled": "on", "source": "return 1"}
    logged_in(dora).post(page_of(acme_script), values)
    assert LogEntry.objects.filter(user=dora).exists()
    return acme_script


def test_a_history_names_an_administrator_of_another_home_by_email_only(
    as_bob: Client, as_root: Client, renamed_by_dora: Script
) -> None:
    page = text_of(as_bob.get(page_of(renamed_by_dora, "history")))

    assert "dora@example.com" in page
    assert "(Dora)" not in page
    assert "(Dora)" in text_of(as_root.get(page_of(renamed_by_dora, "history")))


def test_a_history_hides_the_address_of_a_former_member(
    as_bob: Client, dora: User, acme: Organisation, renamed_by_dora: Script
) -> None:
    remove_member(acme, dora)
    User.objects.filter(pk=dora.pk).update(email="new@example.com")

    page = text_of(as_bob.get(page_of(renamed_by_dora, "history")))

    assert [
        text for text in ("new@example.com", "dora@example.com", "(Dora)") if text in page
    ] == []
    assert "A former member" in page


def test_versions_and_keys_hide_the_address_of_a_former_member(
    as_bob: Client, dora: User, acme: Organisation, acme_token: str, renamed_by_dora: Script
) -> None:
    api_key = issue_api_key(acme, name="till", created_by=dora).api_key
    version = renamed_by_dora.versions.latest("number")
    pages = [page_of(version), page_of(renamed_by_dora), list_of(ScriptVersion), page_of(api_key)]
    before = ["dora@example.com" in text_of(as_bob.get(page)) for page in pages]
    remove_member(acme, dora)
    User.objects.filter(pk=dora.pk).update(email="new@example.com")

    query = "query($id: ID!) { script(id: $id) { version { author } versions { author } } }"
    script = admin_graphql(query, acme_token, id=str(renamed_by_dora.pk)).data["script"]

    assert before == [True] * 4
    assert [page for page in pages if "new@example.com" in text_of(as_bob.get(page))] == []
    authors = [version["author"] for version in (script["version"], *script["versions"])]
    assert authors == ["Former member", "Former member", "Unknown"]
