"""The second factor of staff: set up, asked for, lost, reset."""

import logging
import re
from base64 import b32decode
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as AdminSession
from django.test import Client
from django.urls import reverse
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows import second_factor
from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from tests.admin.pages import logged_in, page_of, text_of
from tests.admin.second_factors import (
    CODE,
    HOME,
    LOGIN,
    OWN,
    after_password,
    bob,
    code_of,
    enter,
    is_in,
    recovery_codes,
    wait_a_minute,
    wrong_code,
)
from tests.concurrency import at_once

__all__ = ["bob", "recovery_codes"]


def test_without_one_the_password_is_enough(bob: User) -> None:
    assert is_in(after_password())


def test_the_page_shows_the_secret_as_text_and_as_a_picture(bob: User, as_bob: Client) -> None:
    as_bob.post(OWN, {"begin": "yes"})

    response = as_bob.get(OWN)

    text = text_of(response)
    shown = re.search(r'<code id="secret"[^>]*>([A-Z2-7 ]+)</code>', text)
    assert shown is not None
    assert b32decode(shown[1].replace(" ", "")) == TOTPDevice.objects.get().bin_key
    # Scales as a whole: with a fixed size the page would cut it, and no app could read it.
    assert re.search(r'<svg[^>]* viewBox="0 0 (\d+) \1"', text)
    assert not re.search(r"<svg[^>]* width=", text)
    assert "no-store" in response["Cache-Control"]


def test_a_secret_that_is_not_confirmed_counts_for_nothing(bob: User, as_bob: Client) -> None:
    as_bob.post(OWN, {"begin": "yes"})

    assert is_in(after_password())


def test_the_first_code_turns_it_on_and_shows_ten_recovery_codes_once(
    bob: User, as_bob: Client
) -> None:
    as_bob.post(OWN, {"begin": "yes"})

    response = as_bob.post(OWN, {"code": code_of(bob)}, follow=True)

    codes = re.findall(r"\b[2-9a-z]{5}-[2-9a-z]{5}\b", text_of(response))
    assert len(set(codes)) == 10
    assert "no-store" in response["Cache-Control"]
    assert second_factor.has_second_factor(bob)
    assert is_in(as_bob)
    assert not is_in(after_password())
    assert codes[0] not in text_of(as_bob.get(OWN))
    assert "You have 10 recovery codes left" in text_of(as_bob.get(OWN))


def test_a_wrong_first_code_turns_nothing_on(bob: User, as_bob: Client) -> None:
    as_bob.post(OWN, {"begin": "yes"})

    response = as_bob.post(OWN, {"code": wrong_code(bob)})

    assert response.status_code == 200
    assert "This code is wrong" in text_of(response)
    assert not second_factor.has_second_factor(bob)
    assert not StaticToken.objects.exists()


def test_setting_up_a_second_factor_limits_the_persons_other_logins(bob: User) -> None:
    here, elsewhere = logged_in(bob), logged_in(bob)
    here.post(OWN, {"begin": "yes"})

    here.post(OWN, {"code": code_of(bob)})

    assert is_in(here)
    assert not is_in(elsewhere)


def test_nothing_is_reached_before_the_code(bob: User, recovery_codes: list[str]) -> None:
    client = after_password()

    home = client.get(HOME)
    login = client.get(home["Location"])
    own = client.get(OWN)

    assert home["Location"] == f"{LOGIN}?next={HOME}"
    assert login["Location"].startswith(CODE)
    assert own["Location"] == LOGIN
    assert not AuthEvent.objects.filter(kind=AuthEventKind.ADMIN_LOGIN).exists()


def test_turning_it_off_needs_more_than_the_password(bob: User, recovery_codes: list[str]) -> None:
    client = after_password()

    begun = client.post(OWN, {"begin": "yes"})
    turned_off = client.post(OWN, {"code": code_of(bob), "turn_off": ""})

    assert (begun["Location"], turned_off["Location"]) == (LOGIN, LOGIN)
    assert second_factor.has_second_factor(bob)
    assert TOTPDevice.objects.count() == 1


def test_the_code_logs_in_and_redirects_to_the_requested_page(
    bob: User, recovery_codes: list[str]
) -> None:
    client, wanted = after_password(), reverse("admin:scripts_engine_script_changelist")
    before = client.session.session_key

    response = enter(client, code_of(bob), next=wanted)

    assert response["Location"] == wanted
    assert is_in(client)
    assert client.session.session_key != before
    assert AuthEvent.objects.get(kind=AuthEventKind.ADMIN_LOGIN).user == bob


def test_the_way_on_leads_to_no_other_site(bob: User, recovery_codes: list[str]) -> None:
    response = enter(after_password(), code_of(bob), next="//evil.example/")

    assert response["Location"] == HOME


def test_a_wrong_code_is_refused_and_recorded(bob: User, recovery_codes: list[str]) -> None:
    client, typed = after_password(), wrong_code(bob)

    response = enter(client, typed)

    assert response.status_code == 200
    assert "This code is wrong" in text_of(response)
    assert not is_in(client)
    event = AuthEvent.objects.get(kind=AuthEventKind.ADMIN_LOGIN_REFUSED)
    assert (event.user, event.reason) == (bob, "wrong-code")
    assert typed not in str(AuthEvent.objects.values())


def test_a_code_is_accepted_once(bob: User, recovery_codes: list[str]) -> None:
    code = code_of(bob)
    first, second = after_password(), after_password()

    enter(first, code)
    enter(second, code)

    assert (is_in(first), is_in(second)) == (True, False)


def test_wrong_codes_make_the_right_one_wait(
    bob: User, recovery_codes: list[str], settings: Any
) -> None:
    # However slow the machine is, the wait after a wrong code is not over before the second.
    settings.OTP_TOTP_THROTTLE_FACTOR = settings.OTP_STATIC_THROTTLE_FACTOR = 50
    client = after_password()
    enter(client, wrong_code(bob))

    response = enter(client, code_of(bob))

    assert response.status_code == 429
    assert int(response["Retry-After"]) >= 1
    assert "Too many wrong codes" in text_of(response)
    assert not is_in(client)
    wait_a_minute()
    enter(client, code_of(bob))
    assert is_in(client)


def test_a_recovery_code_opens_once(bob: User, recovery_codes: list[str]) -> None:
    first, second = after_password(), after_password()

    enter(first, recovery_codes[0].upper())
    enter(second, recovery_codes[0])

    assert (is_in(first), is_in(second)) == (True, False)
    assert StaticToken.objects.count() == 9


def test_recovery_codes_are_kept_as_digests(bob: User, recovery_codes: list[str]) -> None:
    kept = str(list(StaticToken.objects.values()))

    assert recovery_codes[0] not in kept
    assert recovery_codes[0].replace("-", "") not in kept


def test_anothers_code_is_worth_nothing(bob: User, recovery_codes: list[str], root: User) -> None:
    second_factor.begin_enrolment(root)
    client = after_password()

    enter(client, code_of(root))

    assert not is_in(client)


def test_new_recovery_codes_end_the_old_ones(bob: User, recovery_codes: list[str]) -> None:
    client = after_password()
    enter(client, code_of(bob))

    response = client.post(OWN, {"code": recovery_codes[0], "renew": ""}, follow=True)

    assert len(re.findall(r"\b[2-9a-z]{5}-[2-9a-z]{5}\b", text_of(response))) == 10
    assert recovery_codes[1] not in text_of(response)
    assert is_in(client)
    other = after_password()
    enter(other, recovery_codes[1])
    assert not is_in(other)


def test_turning_it_off_needs_a_code(bob: User, recovery_codes: list[str]) -> None:
    client = after_password()
    enter(client, code_of(bob))

    refused = client.post(OWN, {"code": wrong_code(bob), "turn_off": ""})
    still_on = second_factor.has_second_factor(bob)
    done = client.post(OWN, {"code": recovery_codes[0], "turn_off": ""})

    assert (refused.status_code, still_on) == (200, True)
    assert done.status_code == 302
    assert not second_factor.has_second_factor(bob)
    assert not StaticToken.objects.exists()
    assert is_in(after_password())


def test_changes_of_the_own_second_factor_are_in_the_audit_log(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    as_bob.post(OWN, {"begin": "yes"})
    as_bob.post(OWN, {"code": code_of(bob)})
    TOTPDevice.objects.update(last_t=-1)
    as_bob.post(OWN, {"code": code_of(bob)})
    TOTPDevice.objects.update(last_t=-1)
    as_bob.post(OWN, {"code": code_of(bob), "turn_off": ""})

    events = AuthEvent.objects.filter(kind=AuthEventKind.SECOND_FACTOR_CHANGED).order_by("id")
    assert [event.reason for event in events] == ["turned-on", "new-recovery-codes", "turned-off"]
    assert {(event.user, event.organisation) for event in events} == {(bob, acme)}


def test_where_it_is_required_staff_set_one_up_first(bob: User, settings: Any) -> None:
    settings.IS_SECOND_FACTOR_REQUIRED = True
    client = after_password()

    home = client.get(HOME)
    login = client.get(home["Location"])
    page = client.get(login["Location"])

    assert login["Location"].startswith(OWN)
    assert "A second factor is required." in text_of(page)
    client.post(OWN, {"begin": "yes"})
    client.post(OWN, {"code": code_of(bob)})
    assert is_in(client)
    assert AuthEvent.objects.get(kind=AuthEventKind.ADMIN_LOGIN).user == bob


def test_where_it_is_required_the_page_shows_nothing_else_before(
    as_bob: Client, settings: Any
) -> None:
    settings.IS_SECOND_FACTOR_REQUIRED = True

    assert reverse("admin:accounts_user_changelist") not in text_of(as_bob.get(OWN))


def test_logging_out_needs_no_code(bob: User, recovery_codes: list[str]) -> None:
    client = after_password()

    response = client.post(reverse("admin:logout"))

    assert response.status_code == 200
    assert client.get(CODE)["Location"] == LOGIN


@pytest.mark.parametrize("page", [CODE, OWN])
def test_a_stranger_is_sent_to_the_login(client: Client, db: None, page: str) -> None:
    assert client.get(page)["Location"] == LOGIN
    assert client.post(page, {"begin": "yes"})["Location"] == LOGIN


def test_only_staff_can_set_up_a_second_factor(alice: User) -> None:
    assert logged_in(alice).post(OWN, {"begin": "yes"})["Location"] == LOGIN
    assert not TOTPDevice.objects.exists()


def test_a_new_factor_ends_logins_verified_with_the_old_one(
    bob: User, recovery_codes: list[str]
) -> None:
    first, other = after_password(), after_password()
    enter(first, code_of(bob))
    enter(other, recovery_codes[0])
    first.post(OWN, {"code": recovery_codes[1], "turn_off": "yes"})
    first.post(OWN, {"begin": "yes"})
    first.post(OWN, {"code": code_of(bob)})

    assert is_in(first)
    assert not is_in(other)


def test_where_it_becomes_required_open_logins_reach_only_its_page(
    bob: User, settings: Any
) -> None:
    client = logged_in(bob)
    was_in = is_in(client)
    settings.IS_SECOND_FACTOR_REQUIRED = True

    assert was_in
    assert client.get(HOME)["Location"].startswith(LOGIN)
    assert client.post(page_of(bob), {"name": "Robert"})["Location"].startswith(LOGIN)
    assert client.get(OWN).status_code == 200
    assert User.objects.get(pk=bob.pk).name == "Bob"


@pytest.mark.django_db(transaction=True)
def test_concurrent_uses_of_one_recovery_code_log_in_once(
    bob: User, recovery_codes: list[str]
) -> None:
    clients = [after_password() for _ in range(6)]
    at_once(6, lambda number: enter(clients[number], recovery_codes[0]))

    assert [is_in(client) for client in clients].count(True) == 1
    assert StaticToken.objects.count() == 9


def test_no_page_shows_the_secrets_of_second_factors(as_root: Client, bob: User) -> None:
    assert as_root.get("/admin/otp_totp/totpdevice/").status_code == 404
    assert as_root.get("/admin/otp_static/staticdevice/").status_code == 404


def test_secrets_are_in_no_history_message_or_log(
    bob: User, as_bob: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        as_bob.post(OWN, {"begin": "yes"})
        device = TOTPDevice.objects.get()
        code = code_of(bob)
        response = as_bob.post(OWN, {"code": code}, follow=True)

    recovery_code = re.findall(r"\b[2-9a-z]{5}-[2-9a-z]{5}\b", text_of(response))[0]
    kept = (
        caplog.text
        + str(list(LogEntry.objects.values()))
        + str(list(AuthEvent.objects.values()))
        + str([session.get_decoded() for session in AdminSession.objects.all()])
        + str(response.cookies)
    )
    assert "Turned on the second factor." in kept
    assert device.key not in kept
    assert f"'{code}'" not in kept
    assert recovery_code not in kept
