"""The page on which a person approves or refuses a program's login."""

import time
from typing import Any

import pytest
from django.test import Client

from accounts.admin.step_up import FRESH_FOR
from accounts.flows.api_keys import issue_api_key
from accounts.flows.minting import Maker
from accounts.flows.organisations import remove_member
from accounts.flows.users import update_user
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Membership, Organisation, Role, User
from sessions_api.models import DeviceAuthorization
from tests.admin.pages import logged_in, prove, text_of
from tests.admin.roles import make_staff
from tests.device_logins import PAGE, Started, error_of, let_time_pass, log_in, poll, start
from tests.written import nothing_written

CODE_WRONG = "No login waits under this code"
QUESTION = "Did you start this login yourself, just now?"


def show(client: Client, started: Started, **form: Any) -> Any:
    return client.post(PAGE, {"user_code": started.user_code, **form})


def approval(organisation: Organisation, *scopes: str, **changes: Any) -> dict[str, Any]:
    return {
        "organisation": str(organisation.pk),
        "scopes": scopes or ["ReadScripts"],
        "days": "90",
        "key_name": "my laptop",
        "approve": "",
        **changes,
    }


def state_of(started: Started) -> str:
    return DeviceAuthorization.objects.get(pk=started.row.pk).state


# --- The way to the page -------------------------------------------------------------------------


def test_page_asks_for_the_login_and_keeps_the_code(client: Client, db: None) -> None:
    answer = client.get(f"{PAGE}?user_code=WDJB-MJHT")

    assert answer.status_code == 302
    assert answer["Location"] == "/admin/login/?next=/admin/device/%3Fuser_code%3DWDJB-MJHT"


def test_page_asks_for_a_fresh_proof_before_anything(as_bob: Client, acme: Organisation) -> None:
    started = start()
    prove(as_bob, time.time() - FRESH_FOR.total_seconds() - 2)

    with nothing_written():
        shown = as_bob.get(PAGE)
        sent = show(as_bob, started, **approval(acme))

    where = "/admin/step_up/?next=%2Fadmin%2Fdevice%2F"
    assert (shown.status_code, shown["Location"]) == (302, where)
    assert (sent.status_code, sent["Location"], sent.content) == (302, where, b"")
    assert state_of(started) == "pending"


def test_a_code_in_the_address_fills_the_field_and_no_more(as_bob: Client) -> None:
    started = start()

    with nothing_written():
        answer = as_bob.get(PAGE, {"user_code": started.user_code})

    assert f'value="{started.user_code}"' in text_of(answer)
    assert QUESTION not in text_of(answer)
    assert "no-store" in answer["Cache-Control"]


def test_hostile_code_in_the_address_is_not_repeated(as_bob: Client) -> None:
    answer = as_bob.get(PAGE, {"user_code": '"><script>alert(1)</script>'})

    assert "alert(1)" not in text_of(answer)


# --- What the page says --------------------------------------------------------------------------


def test_page_shows_who_asks_from_where_and_for_what(as_bob: Client) -> None:
    started = start(
        "ReadScripts Publish",
        client_id="<b>acme</b>",
        REMOTE_ADDR="192.0.2.7",
        HTTP_USER_AGENT="curl/8",
    )

    text = text_of(show(as_bob, started))

    assert QUESTION in text
    assert "If somebody sent you the code or a link, refuse" in text
    assert started.user_code in text
    assert "&lt;b&gt;acme&lt;/b&gt;" in text
    assert "Not verified" in text
    assert "192.0.2.7" in text
    assert "Not your address, which is 127.0.0.1" in text
    assert "curl/8" in text
    assert 'value="ReadScripts"' in text
    assert 'value="Publish"' in text
    assert 'value="WriteSecrets"' not in text
    assert "Acme" in text


@pytest.mark.parametrize("typed", ["{}", " {} ", "lower", "bare", "spaced"])
def test_code_may_be_typed_in_any_way(as_bob: Client, typed: str) -> None:
    started = start()
    code = started.user_code
    forms = {
        "lower": code.lower(),
        "bare": code.replace("-", ""),
        "spaced": f"{code[:4]} {code[5:].lower()}",
    }

    answer = as_bob.post(PAGE, {"user_code": forms.get(typed, typed.format(code))})

    assert QUESTION in text_of(answer)


def test_person_with_several_organisations_chooses_one_first(
    as_bob: Client, bob: User, globex: Organisation
) -> None:
    Membership.objects.create(organisation=globex, user=bob, role=Role.VIEWER)
    started = start("ReadScripts Publish")

    asked = text_of(show(as_bob, started))
    chosen = text_of(show(as_bob, started, organisation=str(globex.pk)))

    assert "Which organisation may it access?" in asked
    assert 'value="Publish"' not in asked
    assert "What may it do in Globex?" in chosen
    assert 'value="ReadScripts"' in chosen
    assert 'value="Publish"' not in chosen
    assert "does not get it: Publish." in chosen


def test_person_without_a_role_can_only_refuse(as_erin: Client) -> None:
    started = start()

    text = text_of(show(as_erin, started))

    assert "You cannot approve this login" in text
    assert 'name="approve"' not in text
    assert 'name="refuse"' in text


# --- Answers -------------------------------------------------------------------------------------


def test_approved_program_gets_a_key_of_that_name_and_scopes(
    as_bob: Client, acme: Organisation
) -> None:
    started = start("ReadScripts Publish")

    answer = show(as_bob, started, **approval(acme, "Publish", days="7"))

    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert "Approved. Return to" in text_of(as_bob.get(PAGE))
    assert ApiKey.objects.count() == 0
    document, key = poll(started).json(), ApiKey.objects.get()
    assert document["scope"] == "Publish"
    assert (key.name, key.scopes) == ("my laptop", ["Publish"])
    assert (key.expires_at - key.created_at).days in (6, 7)  # type: ignore[operator]


def test_refused_program_gets_nothing(as_bob: Client) -> None:
    started = start()

    answer = show(as_bob, started, refuse="")

    event = AuthEvent.objects.get(kind="program-login.refused")
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert (event.actor_label, event.subject_label) == ("bob@example.com", "moonhook-cli")
    assert error_of(poll(started)) == "access_denied"
    assert ApiKey.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"scopes": []}, "Choose at least one"),
        ({"scopes": ["Publish"]}, "Select a valid choice"),
        ({"scopes": ["All"]}, "Select a valid choice"),
        ({"scopes": ["Everything"]}, "Select a valid choice"),
        ({"days": "0"}, "greater than or equal to 1"),
        ({"days": "366"}, "less than or equal to 365"),
        ({"days": "x"}, "Enter a whole number"),
        ({"key_name": ""}, "This field is required"),
        ({"key_name": "a" * 201}, "at most 200 characters"),
        ({"key_name": "a\0"}, "Null characters are not allowed"),
    ],
)
def test_wrong_form_approves_nothing(
    as_bob: Client, acme: Organisation, changes: dict[str, Any], text: str
) -> None:
    started = start("ReadScripts")

    with nothing_written():
        answer = show(as_bob, started, **{**approval(acme), **changes})

    assert answer.status_code == 200
    assert text in text_of(answer)
    assert state_of(started) == "pending"
    assert show(as_bob, started, **approval(acme)).status_code == 302


@pytest.mark.parametrize("organisation", ["globex", "", "x", "\0"])
def test_foreign_organisation_is_not_to_be_had(
    as_bob: Client, globex: Organisation, acme: Organisation, organisation: str
) -> None:
    started = start()
    key = str(globex.pk) if organisation == "globex" else organisation

    with nothing_written():
        answer = show(as_bob, started, **{**approval(acme), "organisation": key})

    assert answer.status_code == 200
    assert "Globex" not in text_of(answer)
    assert "Which organisation may it access?" in text_of(answer)
    assert 'name="approve"' not in text_of(answer)
    assert state_of(started) == "pending"


def test_role_that_was_lowered_after_the_page_was_shown_gives_no_more(
    as_bob: Client, acme: Organisation, bob: User
) -> None:
    started = start("ReadScripts Publish")
    assert 'value="Publish"' in text_of(show(as_bob, started))
    update_user(acme, bob, role=Role.VIEWER)

    with nothing_written():
        answer = show(as_bob, started, **approval(acme, "ReadScripts", "Publish"))

    assert "Select a valid choice" in text_of(answer)
    assert state_of(started) == "pending"


def test_member_who_was_removed_after_the_page_was_shown_gives_nothing(
    as_bob: Client, acme: Organisation, bob: User
) -> None:
    started = start()
    remove_member(acme, bob)

    with nothing_written():
        answer = show(as_bob, started, **approval(acme))

    assert "You cannot approve this login" in text_of(answer)
    assert state_of(started) == "pending"


def test_second_answer_is_refused(as_bob: Client, acme: Organisation) -> None:
    started = start()
    show(as_bob, started, **approval(acme))

    with nothing_written():
        again = show(as_bob, started, refuse="")

    assert CODE_WRONG in text_of(again)
    assert state_of(started) == "approved"


def test_expired_code_is_refused(as_bob: Client, acme: Organisation) -> None:
    started = start()
    let_time_pass(started, 601)

    with nothing_written():
        answer = show(as_bob, started, **approval(acme))

    assert CODE_WRONG in text_of(answer)
    assert state_of(started) == "pending"


# --- Guessing ------------------------------------------------------------------------------------


def test_five_wrong_codes_end_the_tries_for_right_ones_too(
    as_bob: Client, acme: Organisation
) -> None:
    started = start()
    for _ in range(5):
        assert CODE_WRONG in text_of(as_bob.post(PAGE, {"user_code": "BBBB-BBBB"}))

    with nothing_written(besides=AuthEvent):
        answer = show(as_bob, started, **approval(acme))

    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 600
    assert "Too many attempts" in text_of(answer)
    assert state_of(started) == "pending"
    event = AuthEvent.objects.get(kind=AuthEventKind.RATE_LIMITED)
    assert (event.reason, event.actor_label) == ("user-codes", "bob@example.com")
    show(as_bob, started)
    assert AuthEvent.objects.filter(kind=AuthEventKind.RATE_LIMITED).count() == 1


def test_wrong_codes_count_for_the_person_from_everywhere(as_bob: Client) -> None:
    started = start()
    for number in range(5):
        as_bob.post(PAGE, {"user_code": "BBBB-BBBB"}, REMOTE_ADDR=f"192.0.2.{number}")

    answer = as_bob.post(PAGE, {"user_code": started.user_code}, REMOTE_ADDR="192.0.2.9")

    assert answer.status_code == 429


def test_wrong_codes_count_for_the_address_of_several_people(
    as_bob: Client, as_erin: Client, charlie: User
) -> None:
    started = start()
    for number in range(5):
        (as_bob if number % 2 else as_erin).post(PAGE, {"user_code": "BBBB-BBBB"})

    at_the_address = show(logged_in(charlie), started)
    elsewhere = logged_in(charlie).post(
        PAGE, {"user_code": started.user_code}, REMOTE_ADDR="192.0.2.9"
    )

    assert at_the_address.status_code == 429
    assert QUESTION in text_of(elsewhere)


def test_right_codes_are_not_counted(as_bob: Client) -> None:
    started = start()

    answers = [show(as_bob, started) for _ in range(7)]

    assert [answer.status_code for answer in answers] == [200] * 7


def test_unknown_expired_and_answered_codes_look_the_same(as_bob: Client) -> None:
    expired, refused = start(), start()
    let_time_pass(expired, 601)
    show(as_bob, refused, refuse="")
    as_bob.get(PAGE)  # Takes the message.

    texts = [
        text_of(as_bob.post(PAGE, {"user_code": code})).split("<main")[-1].replace(code, "")
        for code in ("BBBB-BBBB", expired.user_code, refused.user_code)
    ]

    assert all(CODE_WRONG in text for text in texts)
    assert len({len(text) for text in texts}) == 1


# --- Revoking -------------------------------------------------------------------------------------


def key_of(user: User, organisation: Organisation) -> ApiKey:
    log_in(user, organisation)
    return ApiKey.objects.get(approved_by=user)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.AUTHOR])
def test_whoever_approved_a_key_sees_and_revokes_it(acme: Organisation, role: Role) -> None:
    author = make_staff(acme, role)
    api_key = key_of(author, acme)
    client = logged_in(author)

    listed = text_of(client.get(PAGE))
    answer = client.post(PAGE, {"revoke": str(api_key.pk)}, follow=True)

    assert f'value="{api_key.pk}"' in listed
    assert "is revoked" in text_of(answer)
    assert f'value="{api_key.pk}"' not in text_of(answer)
    api_key.refresh_from_db()
    assert api_key.revoked_at is not None
    assert AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_REVOKED, subject_id=api_key.pk)


def test_keys_that_a_revoked_one_created_are_named_and_end(acme: Organisation) -> None:
    administrator = make_staff(acme, Role.ADMINISTRATOR)
    api_key = key_of(administrator, acme)
    child = issue_api_key(acme, name="child", maker=Maker.key(api_key)).api_key

    answer = logged_in(administrator).post(PAGE, {"revoke": str(api_key.pk)}, follow=True)

    assert f"created with it are revoked as well: child ({child.key})" in text_of(answer)
    assert not ApiKey.objects.filter(revoked_at=None).exists()


@pytest.mark.parametrize("given", ["other", "x", "", "00000000-0000-0000-0000-000000000000"])
def test_nobody_revokes_another_persons_key_here(
    as_bob: Client, acme: Organisation, given: str
) -> None:
    api_key = key_of(make_staff(acme, Role.AUTHOR), acme)

    listed = text_of(as_bob.get(PAGE))
    with nothing_written():
        answer = as_bob.post(PAGE, {"revoke": str(api_key.pk) if given == "other" else given})

    assert answer.status_code == 404
    assert str(api_key.pk) not in listed


def test_revoking_asks_for_a_fresh_proof(acme: Organisation) -> None:
    author = make_staff(acme, Role.AUTHOR)
    api_key = key_of(author, acme)
    client = logged_in(author)
    prove(client, 0)

    with nothing_written():
        answer = client.post(PAGE, {"revoke": str(api_key.pk)})

    where = "/admin/step_up/?next=%2Fadmin%2Fdevice%2F"
    assert (answer.status_code, answer["Location"]) == (302, where)
