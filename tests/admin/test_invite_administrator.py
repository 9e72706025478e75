"""An administrator makes another one of their own organisation, and of no other."""

from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core import mail
from django.test import Client
from django.urls import reverse

from accounts.flows.organisations import accept_invitation, add_member, remove_member
from accounts.flows.users import update_user
from accounts.models import (
    AuthEvent,
    Invitation,
    Membership,
    Organisation,
    Role,
    User,
)
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from core.errors import NotFoundError
from tests import factories
from tests.accounts.test_address_answers import limited_events, use_up
from tests.admin.pages import list_of, logged_in, page_of, text_of
from tests.admin.password_mails import links_mailed, open_link, set_password, use

EMAIL = "frank@example.net"


def invite(client: Client, organisation: Organisation, email: str = EMAIL, **more: str) -> Any:
    form = {"email": email, "role": "administrator", **more}
    return client.post(page_of(organisation, "invite_administrator"), form)


def told(client: Client, organisation: Organisation, email: str) -> str:
    """The message that the administrator reads, with the address left out."""
    form = {"email": email, "role": "administrator"}
    response = client.post(page_of(organisation, "invite_administrator"), form, follow=True)
    return str([str(m) for m in response.context["messages"]]).replace(email, "…")


def state_of(user: User) -> tuple[Any, ...]:
    user = User.objects.get(pk=user.pk)
    return (user.password, user.is_staff, user.is_active, user.home_id, user.name)


def members(organisation: Organisation) -> set[tuple[str, str]]:
    rows = Membership.objects.filter(organisation=organisation)
    return set(rows.values_list("user__email", "role"))


# --- New users, and users of the own home ---------------------------------------------------------


def test_a_new_user_becomes_staff_by_setting_a_password(acme: Organisation, as_bob: Client) -> None:
    invited = invite(as_bob, acme, name="Frank")
    frank = User.objects.get(email=EMAIL)
    before = (frank.is_staff, frank.has_usable_password(), frank.home, frank.name)
    (link,) = links_mailed()
    used = use(link)

    frank.refresh_from_db()
    assert invited.status_code == 302
    assert before == (False, False, acme, "Frank")
    assert (used.status_code, used["Location"]) == (302, reverse("admin:login"))
    assert frank.is_staff
    assert frank.check_password("a new password 1")
    assert not frank.is_superuser
    assert (EMAIL, Role.ADMINISTRATOR) in members(acme)


def test_the_mail_names_the_organisation_and_nothing_else_of_it(
    acme: Organisation, as_bob: Client
) -> None:
    invite(as_bob, acme)
    links_mailed()

    (sent,) = mail.outbox
    assert sent.to == [EMAIL]
    assert "“Acme”" in sent.body
    assert "valid for 24 hours and works once" in sent.body
    assert "bob" not in sent.body
    assert str(acme.pk) not in sent.body


def test_the_new_administrator_sees_the_own_organisation_only(
    acme: Organisation, globex: Organisation, as_bob: Client, charlie: User
) -> None:
    invite(as_bob, acme)
    use(links_mailed()[0])

    as_frank = logged_in(User.objects.get(email=EMAIL))
    assert "Acme" in text_of(as_frank.get(list_of(Organisation)))
    assert "Globex" not in text_of(as_frank.get(list_of(Organisation)))
    assert as_frank.get(page_of(globex)).status_code == 404
    assert charlie.email not in text_of(as_frank.get(list_of(User)))


def test_a_member_becomes_administrator_and_gets_a_link(
    acme: Organisation, as_bob: Client, alice: User
) -> None:
    invite(as_bob, acme, " ALICE@example.com")

    assert (alice.email, Role.ADMINISTRATOR) in members(acme)
    assert not User.objects.get(pk=alice.pk).is_staff
    use(links_mailed()[0])
    assert User.objects.get(pk=alice.pk).is_staff


def test_staff_with_a_password_need_no_link(acme: Organisation, as_bob: Client, erin: User) -> None:
    erin.set_password("a password of erin")
    erin.save()

    text = told(as_bob, acme, erin.email)

    assert "is Administrator of Acme now" in text
    assert (erin.email, Role.ADMINISTRATOR) in members(acme)
    assert links_mailed() == []


def test_an_inactive_user_of_this_home_is_refused(
    acme: Organisation, as_bob: Client, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    answer = invite(as_bob, acme, alice.email)

    assert "This user is inactive" in text_of(answer)
    assert (alice.email, Role.MEMBER) in members(acme)
    assert links_mailed() == []


@pytest.mark.parametrize("email", ["not an address", "", "x" * 300 + "@example.com", "a\0@b.de"])
def test_an_invalid_address_is_refused(acme: Organisation, as_bob: Client, email: str) -> None:
    answer = invite(as_bob, acme, email)

    assert answer.status_code == 200
    assert User.objects.count() == 1
    assert links_mailed() == []


def test_a_removed_administrators_link_no_longer_works(acme: Organisation, as_bob: Client) -> None:
    invite(as_bob, acme)
    (link,) = links_mailed()
    frank = User.objects.get(email=EMAIL)
    remove_member(acme, frank)

    assert use(link).status_code == 410
    assert not User.objects.get(pk=frank.pk).is_staff


def test_a_link_does_not_work_after_a_demotion_to_member(
    acme: Organisation, as_bob: Client
) -> None:
    invite(as_bob, acme)
    (link,) = links_mailed()
    client = open_link(link)
    update_user(acme, User.objects.get(email=EMAIL), role=Role.MEMBER)

    assert set_password(client).status_code == 410
    assert not User.objects.get(email=EMAIL).is_staff


def test_a_disabled_organisations_link_does_not_work(acme: Organisation, as_bob: Client) -> None:
    invite(as_bob, acme)
    (link,) = links_mailed()
    acme.is_active = False
    acme.save()
    while_disabled = use(link).status_code
    acme.is_active = True
    acme.save()

    # Nor when it is enabled again.
    assert (while_disabled, use(link).status_code) == (410, 410)
    assert not User.objects.get(email=EMAIL).is_staff


def test_no_link_is_mailed_to_a_removed_member(acme: Organisation, as_bob: Client) -> None:
    invite(as_bob, acme)
    remove_member(acme, User.objects.get(email=EMAIL))

    assert links_mailed() == []
    assert mail.outbox == []


# --- Users of another home ------------------------------------------------------------------------


def test_a_user_of_another_home_is_invited_and_nothing_of_theirs_changes(
    acme: Organisation, globex: Organisation, as_bob: Client
) -> None:
    gina = factories.make_user(globex, "gina@example.org", name="Gina")
    before = state_of(gina)

    invite(as_bob, acme, gina.email, name="Another name")

    assert links_mailed() == []
    assert [sent.to for sent in mail.outbox] == [[gina.email]]
    assert "join it, with the role Administrator in its admin," in mail.outbox[0].body
    assert state_of(gina) == before
    assert members(acme) == {("bob@example.com", Role.ADMINISTRATOR)}


def test_after_accepting_the_user_gets_a_link_and_becomes_staff_by_it(
    acme: Organisation, globex: Organisation, as_bob: Client
) -> None:
    gina = factories.make_user(globex, "gina@example.org")
    # Her home may know this password; it must not open Acme.
    gina.set_password("a password that Globex knows")
    gina.save()
    invite(as_bob, acme, gina.email)

    accept_invitation(gina, gina.invitations.get().pk)
    accepted = state_of(gina)
    (link,) = links_mailed()
    use(link)

    gina.refresh_from_db()
    assert not accepted[1]
    assert gina.is_staff
    assert authenticate(username=gina.email, password="a password that Globex knows") is None
    assert gina.home == globex


def test_staff_of_another_home_get_the_membership_alone(
    acme: Organisation, as_bob: Client, charlie: User
) -> None:
    before = state_of(charlie)
    invite(as_bob, acme, charlie.email)

    accept_invitation(charlie, charlie.invitations.get().pk)

    assert links_mailed() == []
    assert state_of(charlie) == before
    assert (charlie.email, Role.ADMINISTRATOR) in members(acme)


def test_a_plain_invitation_as_administrator_gives_no_login(
    acme: Organisation, globex: Organisation, as_bob: Client
) -> None:
    gina = factories.make_user(globex, "gina@example.org")
    invite(as_bob, acme, gina.email)
    # The newest offer is what counts.
    add_member(acme, email=gina.email, role=Role.ADMINISTRATOR)

    accept_invitation(gina, gina.invitations.get().pk)

    assert links_mailed() == []
    assert not User.objects.get(pk=gina.pk).is_staff


def test_a_member_of_another_home_is_not_given_a_login(
    acme: Organisation, as_bob: Client, dora: User
) -> None:
    before = state_of(dora)

    answer = invite(as_bob, acme, dora.email)

    assert "This member belongs to another organisation" in text_of(answer)
    assert state_of(dora) == before
    assert (dora.email, Role.MEMBER) in members(acme)
    assert links_mailed() == []


def test_unknown_addresses_superusers_and_inactive_users_are_answered_alike(
    acme: Organisation, globex: Organisation, as_bob: Client, root: User, charlie: User
) -> None:
    gone = factories.make_user(globex, "gone@example.org")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    before = [state_of(user) for user in (root, gone, charlie)]

    answers = {told(as_bob, acme, each) for each in (EMAIL, root.email, gone.email, charlie.email)}

    assert answers == {"['… was invited by e-mail to Acme, as Administrator.']"}
    assert [state_of(user) for user in (root, gone, charlie)] == before
    links_mailed()
    assert {address for sent in mail.outbox for address in sent.to} == {EMAIL, charlie.email}


def test_superusers_and_inactive_users_look_like_other_invited_users_afterwards(
    acme: Organisation, globex: Organisation, as_bob: Client, root: User, charlie: User
) -> None:
    gone = factories.make_user(globex, "gone@example.org")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    for each in (root, gone, charlie):
        invite(as_bob, acme, each.email)

    events = AuthEvent.objects.filter(kind="member.invited", organisation=acme)
    assert set(events.values_list("reason", "user__email")) == {
        ("administrator-invited", "bob@example.com")
    }
    listed = text_of(as_bob.get(list_of(Invitation)))
    assert [listed.count(each.email) > 0 for each in (root, gone, charlie)] == [True] * 3
    assert set(Invitation.objects.answerable().values_list("email", flat=True)) == {
        gone.email,
        charlie.email,
    }


def test_a_superuser_cannot_accept_even_as_a_person(
    acme: Organisation, as_bob: Client, root: User
) -> None:
    invite(as_bob, acme, root.email)
    invitation = root.invitations.get()

    with pytest.raises(NotFoundError):
        accept_invitation(root, invitation.pk)

    assert not root.memberships.exists()


# --- Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("email", [EMAIL, "charlie@example.org"])
def test_the_limit_of_invitations_of_an_organisation_holds(
    acme: Organisation, as_bob: Client, charlie: User, email: str
) -> None:
    for _ in range(20):
        hit([windows.INVITATIONS_OF_ORGANISATION], "invitation", str(acme.pk))

    answer = invite(as_bob, acme, email)

    assert "Too many invitations. Try again in 60 min." in text_of(answer)
    assert not User.objects.filter(email=EMAIL).exists()
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("email", [EMAIL, "charlie@example.org", "root@example.com"])
def test_an_address_is_invited_three_times_a_day(
    acme: Organisation, as_bob: Client, charlie: User, root: User, email: str
) -> None:
    answers = [invite(as_bob, acme, email).status_code for _ in range(4)]

    assert answers == [302, 302, 302, 200]


def test_each_invitation_counts_as_an_answer_about_an_address(
    acme: Organisation, as_bob: Client, alice: User
) -> None:
    use_up(acme, but=1)

    answers = [invite(as_bob, acme, each).status_code for each in (alice.email, EMAIL, "g@g.de")]

    # Of an own member it says nothing new.
    assert answers == [302, 302, 200]
    assert limited_events(acme) == 1


def test_the_mails_of_an_organisation_are_limited(
    acme: Organisation, as_bob: Client, settings: Any
) -> None:
    settings.ORGANISATION_MAILS_PER_DAY = 1
    answers = [invite(as_bob, acme, each).status_code for each in (EMAIL, "g@g.de")]

    assert answers == [302, 200]
    assert len(links_mailed()) == 1


# --- Who may invite -------------------------------------------------------------------------------


def test_inviting_to_another_organisation_is_refused(globex: Organisation, as_bob: Client) -> None:
    answers = [as_bob.get(page_of(globex, "invite_administrator")), invite(as_bob, globex)]

    assert {answer.status_code for answer in answers} <= {403, 404}
    assert not User.objects.filter(email=EMAIL).exists()


def test_staff_without_an_organisation_cannot_invite(acme: Organisation, as_erin: Client) -> None:
    assert invite(as_erin, acme).status_code in {403, 404}
    assert not User.objects.filter(email=EMAIL).exists()


def test_the_list_of_users_and_a_users_page_lead_to_the_form(
    acme: Organisation, as_bob: Client, alice: User
) -> None:
    form = page_of(acme, "invite_administrator")

    from_list = as_bob.get(reverse("admin:accounts_user_invite_administrator"))
    from_user = as_bob.get(page_of(alice, "invite_as_administrator"), follow=True)

    assert from_list["Location"] == form
    assert f'value="{alice.email}"' in text_of(from_user)
    assert "Invite to the admin" in text_of(as_bob.get(list_of(User)))
    assert "Invite to the admin" in text_of(as_bob.get(page_of(acme)))


def test_one_of_several_organisations_is_chosen_in_their_list(
    acme: Organisation, globex: Organisation, as_root: Client
) -> None:
    response = as_root.get(reverse("admin:accounts_user_invite_administrator"), follow=True)

    assert "Open the organisation, and choose “Invite to the admin”" in text_of(response)


def test_the_help_text_says_why_staff_is_read_only(as_bob: Client, alice: User) -> None:
    page = text_of(as_bob.get(page_of(alice)))

    assert "To give a login, use “Invite to the admin”" in page
    assert "use “Invite to the admin”" in page


def test_the_form_says_when_no_mail_server_is_configured(
    acme: Organisation, as_bob: Client, settings: Any
) -> None:
    address = page_of(acme, "invite_administrator")
    settings.IS_EMAIL_CONFIGURED = False
    without = text_of(as_bob.get(address))
    settings.IS_EMAIL_CONFIGURED = True

    assert "No mail server is configured" in without
    assert "No mail server is configured" not in text_of(as_bob.get(address))


def test_a_home_that_changes_the_address_meanwhile_does_not_get_the_login(
    acme: Organisation, globex: Organisation, as_bob: Client
) -> None:
    gina = factories.make_user(globex, "gina@example.org")
    invite(as_bob, acme, gina.email)
    update_user(globex, gina, email="globex@example.org")

    with pytest.raises(NotFoundError):
        accept_invitation(gina, gina.invitations.get().pk)

    assert members(acme) == {("bob@example.com", Role.ADMINISTRATOR)}
    assert links_mailed() == []
    # Both addresses are told of the change.
    told = [message.to for message in mail.outbox]
    assert told == [["gina@example.org"], ["globex@example.org"]]
