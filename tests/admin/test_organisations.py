import re

from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.flows.organisations import add_member
from accounts.models import AuthEvent, Invitation, Membership, Organisation, Role, User
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from scripts_engine.flows.alert_script import alert_script_of, set_alert_script
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Script
from scripts_engine.runs.spec import NOBODY
from sessions_api.models import Session
from tests import factories
from tests.admin.pages import CONFIRMED, list_of, logged_in, nothing_inlined, page_of, text_of
from tests.admin.roles import make_staff
from tests.factories import make_script

IN_FORCE = ("Runs are kept for", "Runs kept at most", "Storage quota for runs")


def shown_in(text: str, label: str) -> str:
    """What the read-only field shows."""
    cell = text[text.index(f">{label}<") :]
    [value] = re.findall(r'class="readonly[^>]*>\s*([^<]*?)\s*<', cell)[:1]
    return value.replace("\N{NO-BREAK SPACE}", " ")


def members(*rows: dict[str, str], initial: int = 0) -> dict[str, str]:
    """The data that the inline of members posts."""
    form = {
        f"memberships-{number}-{name}": value
        for number, row in enumerate(rows)
        for name, value in row.items()
    }
    return {
        **form,
        "memberships-TOTAL_FORMS": str(len(rows)),
        "memberships-INITIAL_FORMS": str(initial),
    }


def test_root_adds_an_organisation(as_root: Client) -> None:
    response = as_root.post(list_of(Organisation, "add"), {"name": "  Initech "})

    assert response.status_code == 302
    assert Organisation.objects.get().name == "Initech"


def test_bob_cannot_add_an_organisation(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(list_of(Organisation, "add"), {"name": "Initech"})

    assert response.status_code == 403
    assert list(Organisation.objects.all()) == [acme]


def test_bob_renames_his_organisation(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(page_of(acme), {"name": "Acme Ltd", **nothing_inlined()})

    assert response.status_code == 302
    acme.refresh_from_db()
    assert acme.name == "Acme Ltd"


def test_root_deactivates_an_organisation_and_its_sessions_end(
    as_root: Client, acme: Organisation, acme_token: str
) -> None:
    response = as_root.post(page_of(acme), {"name": "Acme", **nothing_inlined()})

    assert response.status_code == 302
    acme.refresh_from_db()
    assert not acme.is_active
    assert not Session.objects.live().exists()


def test_bob_cannot_switch_his_organisation_on_again(as_bob: Client, acme: Organisation) -> None:
    acme.is_active = False
    acme.save()

    response = as_bob.post(page_of(acme), {"name": "Acme", "is_active": "on", **nothing_inlined()})

    assert response.status_code == 302
    acme.refresh_from_db()
    assert not acme.is_active


def test_bob_invites_a_member_by_email(as_bob: Client, acme: Organisation, charlie: User) -> None:
    row = {"email": " Charlie@Example.org", "role": "administrator"}

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row)}, follow=True)

    invitation = acme.invitations.get(user=charlie)
    assert (response.status_code, invitation.role) == (200, Role.ADMINISTRATOR)
    assert "charlie@example.org was invited to Acme" in text_of(response)
    assert page_of(invitation, "withdraw") in text_of(as_bob.get(page_of(acme)))
    assert not acme.memberships.filter(user=charlie).exists()


def test_a_superusers_address_is_refused_like_an_unknown_one(
    as_bob: Client, acme: Organisation, root: User
) -> None:
    superuser = {"email": "root@example.com", "role": "member"}
    unknown = {"email": "nobody@example.com", "role": "member"}

    refused = as_bob.post(page_of(acme), {"name": "Acme", **members(superuser)})
    not_found = as_bob.post(page_of(acme), {"name": "Acme", **members(unknown)})

    text = "There is no user with this e-mail yet"
    assert (refused.status_code, not_found.status_code) == (200, 200)
    assert (text_of(refused).count(text), text_of(not_found).count(text)) == (1, 1)
    assert Invitation.objects.count() == 0
    assert acme.memberships.count() == 1


def test_bob_withdraws_an_invitation(as_bob: Client, acme: Organisation, charlie: User) -> None:
    invitation = add_member(acme, email=charlie.email)

    asked = as_bob.get(page_of(invitation, "withdraw"))
    still_there = acme.invitations.count()
    response = as_bob.post(page_of(invitation, "withdraw"), CONFIRMED, follow=True)

    assert (asked.status_code, still_there, response.status_code) == (200, 1, 200)
    assert "The invitation of charlie@example.org was withdrawn." in text_of(response)
    assert acme.invitations.count() == 0


def test_the_list_withdraws_invitations_and_says_how_many(
    as_bob: Client, acme: Organisation, charlie: User, dora: User
) -> None:
    add_member(acme, email=charlie.email)
    Membership.objects.filter(user=dora, organisation=acme).delete()
    add_member(acme, email=dora.email)
    ids = [str(invitation.pk) for invitation in acme.invitations.all()]
    selected = {"action": "withdraw_selected", "_selected_action": ids, **CONFIRMED}

    response = as_bob.post(list_of(Invitation), selected, follow=True)

    assert [str(message) for message in response.context["messages"]] == [
        "2 invitations were withdrawn."
    ]
    assert acme.invitations.count() == 0
    assert [entry.is_deletion() for entry in LogEntry.objects.all()] == [True, True]


def test_too_many_invitations_are_refused_and_nothing_is_saved(
    as_bob: Client, acme: Organisation, charlie: User
) -> None:
    key = "invitation", str(acme.pk)
    [hit([windows.INVITATIONS_OF_ORGANISATION], *key) for _ in range(20)]
    row = {"email": charlie.email, "role": "member"}

    response = as_bob.post(page_of(acme), {"name": "New name", **members(row)}, follow=True)

    assert "Nothing was saved. Too many invitations or changes." in text_of(response)
    assert Invitation.objects.count() == 0
    acme.refresh_from_db()
    assert acme.name == "Acme"


def test_an_inactive_organisation_cannot_invite(
    as_bob: Client, acme: Organisation, charlie: User
) -> None:
    Organisation.objects.update(is_active=False)
    row = {"email": charlie.email, "role": "member"}

    response = as_bob.post(page_of(acme), {"name": "New name", **members(row)}, follow=True)

    assert "Nothing was saved. An inactive organisation cannot invite users." in text_of(response)
    assert Invitation.objects.count() == 0
    acme.refresh_from_db()
    assert acme.name == "Acme"


def test_an_unknown_member_is_refused_at_the_field(as_bob: Client, acme: Organisation) -> None:
    row = {"email": "nobody@example.com", "role": "member"}

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row)})

    assert response.status_code == 200
    assert "There is no user with this e-mail yet" in text_of(response)
    assert acme.memberships.count() == 1


def test_adding_a_member_again_is_refused_at_the_field(
    as_bob: Client, acme: Organisation, alice: User
) -> None:
    row = {"email": "alice@example.com", "role": "administrator"}

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row)})

    assert response.status_code == 200
    assert "This user is already a member" in text_of(response)
    assert acme.memberships.get(user=alice).role == Role.MEMBER


def test_bob_changes_a_role(as_bob: Client, acme: Organisation, alice: User) -> None:
    membership = acme.memberships.get(user=alice)
    row = {"id": str(membership.pk), "organisation": str(acme.pk), "role": "administrator"}

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row, initial=1)})

    assert response.status_code == 302
    assert acme.memberships.get(user=alice).role == Role.ADMINISTRATOR


def test_bob_removes_a_member(as_bob: Client, acme: Organisation, alice: User) -> None:
    membership = acme.memberships.get(user=alice)
    row = {
        "id": str(membership.pk),
        "organisation": str(acme.pk),
        "role": "member",
        "DELETE": "on",
    }

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row, initial=1)})

    assert response.status_code == 302
    assert not acme.memberships.filter(user=alice).exists()
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_membership_of_globex_cannot_be_sent_with_acmes_page(
    as_bob: Client, acme: Organisation, globex: Organisation, charlie: User
) -> None:
    membership = globex.memberships.get(user=charlie)
    row = {
        "id": str(membership.pk),
        "organisation": str(acme.pk),
        "role": "member",
        "DELETE": "on",
    }

    response = as_bob.post(page_of(acme), {"name": "Acme", **members(row, initial=1)})

    assert "globex" not in text_of(response).lower()
    assert Membership.objects.get(user=charlie).role == Role.ADMINISTRATOR


def test_the_page_leads_to_keys_and_scripts(as_bob: Client, acme: Organisation) -> None:
    key = factories.make_api_key(acme).api_key
    script = factories.make_script(acme)

    text = text_of(as_bob.get(page_of(acme)))

    assert page_of(key) in text
    assert page_of(script) in text


def test_an_organisation_cannot_be_deleted(as_root: Client, acme: Organisation) -> None:
    response = as_root.post(page_of(acme, "delete"), {"post": "yes"})

    assert response.status_code == 403
    assert Organisation.objects.filter(pk=acme.pk).exists()


def test_root_sets_how_long_the_runs_of_an_organisation_are_kept(
    as_root: Client, acme: Organisation
) -> None:
    kept = {"runs_kept_days": "7", "runs_kept": ""}

    response = as_root.post(
        page_of(acme), {"name": "Acme", "is_active": "on", **kept, **nothing_inlined()}
    )

    assert response.status_code == 302
    acme.refresh_from_db()
    assert (acme.runs_kept_days, acme.runs_kept) == (7, None)


def test_bob_cannot_set_how_long_runs_are_kept(as_bob: Client, acme: Organisation) -> None:
    kept = {"runs_kept_days": "0", "runs_kept": "0"}

    response = as_bob.post(page_of(acme), {"name": "Acme", **kept, **nothing_inlined()})

    assert response.status_code == 302
    acme.refresh_from_db()
    assert (acme.runs_kept_days, acme.runs_kept) == (None, None)


def test_bob_switches_mails_about_failing_scripts_on(as_bob: Client, acme: Organisation) -> None:
    response = as_bob.post(
        page_of(acme), {"name": "Acme", "failure_mails": "on", **nothing_inlined()}
    )

    assert response.status_code == 302
    acme.refresh_from_db()
    assert acme.failure_mails


def test_bob_chooses_the_alert_script_and_none(
    as_bob: Client, acme: Organisation, script: Script
) -> None:
    form = {"name": "Acme", **nothing_inlined()}
    chosen = as_bob.post(page_of(acme), {**form, "alert_script": str(script.pk)})
    stored = alert_script_of(acme)
    shown = as_bob.get(page_of(acme)).content.decode()
    removed = as_bob.post(page_of(acme), {**form, "alert_script": ""})

    assert (chosen.status_code, stored, removed.status_code) == (302, script, 302)
    assert f'<option value="{script.pk}" selected>echo</option>' in shown
    assert alert_script_of(acme) is None
    events = AuthEvent.objects.filter(kind__startswith="alert-script").order_by("pk")
    assert [(event.kind, event.reason, event.actor_label) for event in events] == [
        ("alert-script.set", "echo", "bob@example.com"),
        ("alert-script.removed", "", "bob@example.com"),
    ]


def test_another_organisations_script_and_a_library_are_no_choice(
    as_bob: Client, acme: Organisation, globex: Organisation
) -> None:
    theirs = make_script(globex, name="theirs")
    library = make_script(acme, "return {}", name="money", is_library=True)
    page = as_bob.get(page_of(acme)).content.decode()
    form = {"name": "Acme", **nothing_inlined()}
    refused = [
        as_bob.post(page_of(acme), {**form, "alert_script": str(each.pk)})
        for each in (theirs, library)
    ]

    assert str(theirs.pk) not in page
    assert f'<option value="{library.pk}"' not in page
    assert [response.status_code for response in refused] == [200, 200]
    assert "Select a valid choice" in text_of(refused[0])
    assert alert_script_of(acme) is None


def test_a_disabled_alert_script_is_named(
    as_bob: Client, acme: Organisation, script: Script
) -> None:
    set_alert_script(acme, script)
    update_script(script, author=NOBODY, is_enabled=False)

    assert "“echo” is disabled, so nobody is told." in text_of(as_bob.get(page_of(acme)))


def test_a_viewer_chooses_no_alert_script(acme: Organisation, script: Script) -> None:
    viewer = logged_in(make_staff(acme, Role.VIEWER))
    refused = viewer.post(
        page_of(acme), {"name": "Acme", "alert_script": str(script.pk), **nothing_inlined()}
    )

    assert refused.status_code == 403
    assert alert_script_of(acme) is None


def test_the_page_explains_the_retention_of_runs(as_bob: Client, acme: Organisation) -> None:
    text = text_of(as_bob.get(page_of(acme)))

    assert "Leave empty" not in text
    assert [shown_in(text, name) for name in IN_FORCE] == ["30 days", "100,000", "1 GiB"]


def test_the_page_shows_the_retention_of_this_organisation(
    as_bob: Client, acme: Organisation
) -> None:
    Organisation.objects.update(runs_kept_days=1, runs_kept=0, run_bytes_quota=0)

    text = text_of(as_bob.get(page_of(acme)))

    assert [shown_in(text, name) for name in IN_FORCE] == ["1 day", "No limit", "No quota"]


def test_root_sees_the_defaults_in_empty_fields(as_root: Client, acme: Organisation) -> None:
    text = text_of(as_root.get(page_of(acme)))

    assert "Older runs are deleted, with payloads and logs" in text
    for default in ("30 days", "100,000", "1\N{NO-BREAK SPACE}GiB"):
        assert f'placeholder="{default} (default)"' in text
