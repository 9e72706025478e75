"""The audit log says who did what to whom, and from where."""

from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.admin.event_words import reason_of
from accounts.audit import record
from accounts.flows.organisations import remove_member
from accounts.flows.users import update_user
from accounts.models import (
    ApiKey,
    AuditReason,
    AuthEvent,
    AuthEventKind,
    Organisation,
    Role,
    User,
)
from core.http.origin import NOWHERE, Origin
from hooks.models import Hook
from scripts_engine.audit_kinds import ScriptEvent
from scripts_engine.models import Script, Secret, StoredValue
from tests.admin.pages import CONFIRMED, action_on, list_of, logged_in, page_of, text_of
from tests.admin.test_users import password_page, profile
from tests.factories import admin_graphql

pytestmark = pytest.mark.postgresql

PASSWORD = {
    "password1": "a long enough one",
    "password2": "a long enough one",
    "usable_password": "true",
}
HERE = "127.0.0.1"


def told() -> list[tuple[Any, ...]]:
    """Kind, reason, actor, subject and address of each event."""
    return [
        (e.kind, e.reason, e.actor_kind, e.actor_label, e.subject_label, e.client_address)
        for e in AuthEvent.objects.exclude(kind="session.opened").order_by("pk")
    ]


def shown(client: Client, **query: str) -> str:
    return text_of(client.get(list_of(AuthEvent), query))


# --- People ---------------------------------------------------------------------------------------


def test_granting_and_revoking_staff_is_recorded(as_root: Client, alice: User) -> None:
    as_root.post(page_of(alice), profile(alice, is_staff="on"))
    as_root.post(page_of(alice), profile(alice))

    assert told() == [
        ("staff.granted", "", "operator", "", alice.email, HERE),
        ("staff.revoked", "", "operator", "", alice.email, HERE),
    ]


def test_making_a_superuser_is_recorded_under_their_home(
    as_root: Client, acme: Organisation, alice: User
) -> None:
    as_root.post(page_of(alice), profile(alice, is_superuser="on"))

    event = AuthEvent.objects.get()
    assert (event.kind, event.organisation) == ("superuser.granted", acme)


def test_setting_a_password_is_recorded_with_the_administrator(
    as_bob: Client, bob: User, alice: User
) -> None:
    as_bob.post(password_page(alice), PASSWORD)

    assert told() == [("password.set", "", "user", bob.email, alice.email, HERE)]


def test_a_refused_password_is_not_recorded(as_bob: Client, alice: User) -> None:
    as_bob.post(password_page(alice), PASSWORD | {"password2": "another"})

    assert told() == []


def test_changing_the_own_password_is_recorded(as_bob: Client, bob: User) -> None:
    bob.set_password("the old password")
    bob.save()
    client = logged_in(bob)
    typed = {"old_password": "the old password"}
    typed |= {"new_password1": "a long enough one", "new_password2": "a long enough one"}

    client.post(reverse("admin:password_change"), typed)

    assert told() == [("password.set", "", "user", bob.email, bob.email, HERE)]


def test_a_superuser_made_by_the_command_is_recorded(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a long enough one")
    call_command("createsuperuser", "--noinput", email="new@example.com", verbosity=0)

    actor = ("command", "manage.py createsuperuser", "new@example.com", None)
    assert told() == [
        ("user.created", "", *actor),
        ("superuser.granted", "", *actor),
        ("staff.granted", "", *actor),
        ("password.set", "", *actor),
    ]


def test_a_user_made_by_a_command_is_recorded(acme: Organisation) -> None:
    call_command("create_user", "--email=a@example.com", f"--organisation={acme.pk}", "--json")

    actor = ("command", "manage.py create_user", "a@example.com", None)
    assert told() == [("user.created", "", *actor)]


def test_a_changed_role_is_recorded_with_both_roles(
    acme_token: str, acme_key: Any, alice: User
) -> None:
    AuthEvent.objects.all().delete()
    query = f'mutation {{ updateUser(id: "{alice.pk}", role: Administrator) {{ id }} }}'
    admin_graphql(query, acme_token)
    admin_graphql(query, acme_token)

    actor = ("api-key", "warehouse", alice.email, HERE)
    assert told() == [("membership.role-changed", "member to administrator", *actor)]


# --- Scripts, hooks and secrets -------------------------------------------------------------------


def test_the_life_of_a_script_is_recorded(acme_token: str, acme_script: Script) -> None:
    AuthEvent.objects.all().delete()
    first, script = acme_script.current_version, acme_script.pk
    assert first is not None
    for mutation in (
        f'updateScript(id: "{script}", source: "return 2", enabled: false) {{ id }}',
        f'updateScript(id: "{script}", name: "other", enabled: true) {{ id }}',
        f'restoreScriptVersion(version: "{first.pk}") {{ id }}',
        f'deleteScript(id: "{script}")',
    ):
        assert admin_graphql(f"mutation {{ {mutation} }}", acme_token).errors == []

    assert [entry[:2] for entry in told()] == [
        ("script.disabled", ""),
        ("script.saved", "version 2"),
        ("script.changed", "name"),
        ("script.enabled", ""),
        ("script.restored", "version 1 as version 3"),
        ("script.deleted", ""),
    ]
    assert {entry[2:4] for entry in told()} == {("api-key", "warehouse")}


def test_a_script_saved_in_the_admin_names_the_person(
    as_bob: Client, bob: User, acme_script: Script
) -> None:
    AuthEvent.objects.all().delete()
    fields = {"name": acme_script.name, "timeout_seconds": "10", "is_enabled": "on"}
    as_bob.post(page_of(acme_script), fields | {"source": "return 5"})

    saved = ("script.saved", "version 2", "user", bob.email, acme_script.name, HERE)
    assert told() == [saved]


def test_a_script_that_does_not_compile_leaves_no_event(
    as_bob: Client, acme_script: Script
) -> None:
    AuthEvent.objects.all().delete()
    fields = {"name": acme_script.name, "timeout_seconds": "10", "is_enabled": ""}
    as_bob.post(page_of(acme_script), fields | {"source": "return ("})

    assert told() == []


def test_switching_and_deleting_a_hook_is_recorded(
    as_bob: Client, bob: User, acme_hook: Hook
) -> None:
    AuthEvent.objects.all().delete()
    as_bob.post(page_of(acme_hook, "disable"), CONFIRMED)
    as_bob.post(page_of(acme_hook, "enable"), CONFIRMED)
    as_bob.post(list_of(Hook), action_on(acme_hook, "delete_selected_by_flow"))

    whom = ("", "user", bob.email, str(acme_hook), HERE)
    assert told() == [("hook.disabled", *whom), ("hook.enabled", *whom), ("hook.deleted", *whom)]


def test_a_secret_set_in_the_admin_names_person_and_address(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    typed = {"organisation": str(acme.pk), "name": "SHOP_KEY", "value": "hidden value"}
    as_bob.post(list_of(Secret, "add"), typed)
    as_bob.post(page_of(Secret.objects.get(), "delete"), CONFIRMED | {"post": "yes"})

    whom = ("", "user", bob.email, "SHOP_KEY", HERE)
    assert told() == [("secret.set", *whom), ("secret.deleted", *whom)]
    assert "hidden value" not in str(list(AuthEvent.objects.values()))


def test_a_stored_value_changed_in_the_admin_names_person_and_key(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    typed = {"organisation": str(acme.pk), "typed_key": "stock:7", "entered_as": "json"}
    as_bob.post(list_of(StoredValue, "add"), {**typed, "typed_value": '"hidden value"'})
    as_bob.post(page_of(StoredValue.objects.get(), "delete"), CONFIRMED | {"post": "yes"})

    whom = ("", "user", bob.email, "stock:7", HERE)
    assert told() == [("stored-value.set", *whom), ("stored-value.deleted", *whom)]
    assert "hidden value" not in str(list(AuthEvent.objects.values()))


# --- What a viewer may know -----------------------------------------------------------------------


def test_an_operators_address_is_shown_to_superusers_only(
    as_bob: Client, as_root: Client, root: User, alice: User
) -> None:
    as_root.post(page_of(alice), profile(alice, is_staff="on"))

    assert root.email not in shown(as_bob)
    assert "Moonhook operator" in shown(as_bob)
    assert root.email in shown(as_root)


def test_no_search_reveals_an_operator(
    as_bob: Client, as_root: Client, root: User, alice: User
) -> None:
    as_root.post(page_of(alice), profile(alice, is_staff="on"))
    event = page_of(AuthEvent.objects.get())

    assert event not in shown(as_bob, q=root.email)
    assert event not in shown(as_bob, q=str(root.pk))
    assert event in shown(as_root, q=root.email)


def test_an_operator_is_not_named_to_programs(
    acme_token: str, as_root: Client, root: User, acme: Organisation
) -> None:
    as_root.post(
        list_of(ApiKey, "add"),
        {"organisation": str(acme.pk), "name": "till", "preset": "everything"},
    )
    query = "{ authEvents(first: 1) { nodes { actorKind actorId actorLabel email subjectLabel } } }"

    [node] = admin_graphql(query, acme_token).data["authEvents"]["nodes"]

    assert node == {
        "actorKind": "operator",
        "actorId": None,
        "actorLabel": "",
        "email": "",
        "subjectLabel": "till",
    }


def test_an_actor_of_another_organisation_is_not_named(
    as_bob: Client, as_root: Client, acme: Organisation, charlie: User
) -> None:
    record(ScriptEvent.SECRET_SET, NOWHERE, by=charlie, organisation=acme)
    event = page_of(AuthEvent.objects.get(kind="secret.set"))

    page = shown(as_bob)
    assert "An administrator of another organisation" in page
    assert charlie.email not in page
    assert event not in shown(as_bob, q=charlie.email)
    assert charlie.email in shown(as_root)


def test_a_person_filter_does_not_reveal_an_outsider(
    as_bob: Client, acme: Organisation, charlie: User
) -> None:
    record(ScriptEvent.SECRET_SET, NOWHERE, by=charlie, organisation=acme)
    charlie.memberships.create(organisation=acme)

    page = shown(as_bob, user__id__exact=str(charlie.pk))

    assert page_of(AuthEvent.objects.get(kind="secret.set")) not in page


def test_a_program_does_not_learn_who_an_outsider_was(
    acme_token: str, acme: Organisation, charlie: User
) -> None:
    record(ScriptEvent.SECRET_SET, NOWHERE, by=charlie, organisation=acme)
    record(ScriptEvent.SECRET_DELETED, NOWHERE, user=charlie, organisation=acme)
    charlie.memberships.create(organisation=acme)
    query = f'{{ authEvents(first: 9, user: "{charlie.pk}") {{ nodes {{ kind }} }} }}'

    found = admin_graphql(query, acme_token).data["authEvents"]["nodes"]

    assert found == [{"kind": "secret.deleted"}]


# --- The list -------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", ["bob@example.com", "alice@example.com", "Alice", HERE])
def test_an_event_is_found_by_every_name_in_the_list(
    as_bob: Client, alice: User, term: str
) -> None:
    as_bob.post(password_page(alice), PASSWORD)
    event = page_of(AuthEvent.objects.get())

    assert event in shown(as_bob, q=term)
    assert event not in shown(as_bob, q="nobody@example.com")


def test_the_person_filter_finds_events_about_a_person(as_bob: Client, alice: User) -> None:
    as_bob.post(password_page(alice), PASSWORD)

    page = shown(as_bob, user__id__exact=str(alice.pk))

    assert page_of(AuthEvent.objects.get()) in page


def test_the_subject_links_to_its_page_if_the_viewer_may_open_it(
    as_bob: Client, acme: Organisation, alice: User
) -> None:
    record(AuthEventKind.PASSWORD_SET, NOWHERE, user=alice)
    link = f'href="{page_of(alice)}"'
    before = shown(as_bob)
    remove_member(acme, alice)

    assert link in before
    assert link not in shown(as_bob)
    assert alice.email in shown(as_bob)


def test_a_failed_login_names_the_subject_and_no_actor(as_bob: Client, bob: User) -> None:
    Client().post(reverse("admin:login"), {"username": bob.email, "password": "wrong"})

    event = AuthEvent.objects.get()
    assert (event.actor_kind, event.subject_label) == ("stranger", bob.email)
    assert "Wrong e-mail or password" in shown(as_bob)


def test_an_event_without_an_actor_is_shown(as_bob: Client, acme: Organisation) -> None:
    record(ScriptEvent.SECRET_SET, NOWHERE, organisation=acme, credential="SHOP_KEY")

    event = AuthEvent.objects.get()

    assert event.actor_kind is None
    assert "Not recorded" in text_of(as_bob.get(page_of(event)))


# --- Failed logins elsewhere ----------------------------------------------------------------------


def test_home_counts_the_failed_logins_that_its_link_lists(as_bob: Client, bob: User) -> None:
    before = as_bob.get(reverse("admin:index")).context["home"].failed_logins
    Client().post(reverse("admin:login"), {"username": bob.email, "password": "wrong"})

    after = as_bob.get(reverse("admin:index")).context["home"].failed_logins

    assert (before.number, after.number) == ("0", "1")
    assert page_of(AuthEvent.objects.get()) in text_of(as_bob.get(after.url))


def test_the_failed_logins_of_others_are_not_counted_on_home(
    as_bob: Client, as_root: Client, charlie: User
) -> None:
    Client().post(reverse("admin:login"), {"username": charlie.email, "password": "wrong"})
    Client().post(reverse("admin:login"), {"username": "no@example.com", "password": "wrong"})

    of_bob = as_bob.get(reverse("admin:index")).context["home"].failed_logins
    of_root = as_root.get(reverse("admin:index")).context["home"].failed_logins

    assert (of_bob.number, of_root.number) == ("0", "2")


def test_a_users_page_shows_failures_from_before_they_became_a_superuser(
    as_root: Client, bob: User
) -> None:
    Client().post(reverse("admin:login"), {"username": bob.email, "password": "wrong"})
    User.objects.filter(pk=bob.pk).update(is_superuser=True, is_staff=True)

    page = text_of(as_root.get(page_of(bob)))

    assert "No failed logins in the last 24 hours." not in page
    assert "Wrong e-mail or password" in page


def test_an_update_by_a_member_of_the_organisation_names_them(
    acme: Organisation, alice: User, bob: User
) -> None:
    record(ScriptEvent.SECRET_SET, Origin(client_address=HERE), by=bob, organisation=acme)
    update_user(acme, alice, role=Role.ADMINISTRATOR)

    assert [entry[2:4] for entry in told()] == [("user", bob.email), (None, None)]


def test_creating_a_key_in_the_admin_names_key_and_person(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    as_bob.post(
        list_of(ApiKey, "add"),
        {"organisation": str(acme.pk), "name": "till", "preset": "everything"},
    )

    assert told() == [("api-key.issued", "All", "user", bob.email, "till", HERE)]


def test_an_entry_is_titled_in_words_with_its_time_in_utc(
    as_bob: Client, acme: Organisation
) -> None:
    record(AuthEventKind.API_KEY_ISSUED, NOWHERE, organisation=acme)
    event = AuthEvent.objects.get()

    page = text_of(as_bob.get(page_of(event)))

    assert f"API key created, {event.at:%Y-%m-%d %H:%M:%S} UTC" in page


@pytest.mark.parametrize("reason", [reason for reason in AuditReason if "-" in reason])
def test_no_reason_is_shown_as_its_code(reason: AuditReason) -> None:
    assert reason_of(AuthEvent(reason=reason)).lower() != reason
