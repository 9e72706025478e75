"""A new secret is shown once: by the page after the POST, and to the login that sent it."""

import logging
import re
import time
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as AdminSession
from django.db.models import QuerySet
from django.http import HttpRequest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_otp.oath import totp
from django_otp.plugins.otp_static.models import StaticToken
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.flows import second_factor
from accounts.models import ApiKey, Organisation, Role, User
from config.admin.sessions import forget_admin_sessions
from core.admin import shown_once
from hooks.models import Hook
from scripts_engine.models import Script
from tests import factories
from tests.admin.pages import CONFIRMED, everything, list_of, logged_in, page_of, prove, text_of
from tests.concurrency import at_once
from tests.written import nothing_written

SECRET = re.compile(r"mh[cs]_\w{46}")
CODE = re.compile(r"\b[2-9a-z]{5}-[2-9a-z]{5}\b")
CODES = reverse("admin:recovery_codes")
OWN = reverse("admin:second_factor")
ROTATE_NOW, WITH_OVERLAP = (
    {**CONFIRMED, "overlap_seconds": "0"},
    {**CONFIRMED, "overlap_seconds": "3600"},
)


class Place(NamedTuple):
    """A row with a secret, and the form that creates another one."""

    row: Any
    add_form: dict[str, str]

    @property
    def issued(self) -> str:
        return page_of(self.row, "issued")

    @property
    def rotate(self) -> str:
        return page_of(self.row, "rotate")

    @property
    def digest(self) -> str:
        self.row.refresh_from_db()
        return str(self.row.digest)


@pytest.fixture(params=[Hook, ApiKey], ids=["hook", "key"])
def place(request: pytest.FixtureRequest, acme: Organisation, acme_script: Script) -> Place:
    places = {
        Hook: lambda: Place(
            factories.make_hook(acme_script).hook, {"script": str(acme_script.pk), "name": "new"}
        ),
        ApiKey: lambda: Place(
            factories.make_api_key(acme).api_key,
            {"organisation": str(acme.pk), "name": "new", "preset": "everything"},
        ),
    }
    return places[request.param]()


@pytest.fixture
def ann(acme: Organisation) -> User:
    """Another administrator of Acme."""
    ann = factories.make_user(acme, "ann@example.com", name="Ann", role=Role.ADMINISTRATOR)
    ann.is_staff = True
    ann.save()
    return ann


def secrets_in(response: Any) -> set[str]:
    return set(SECRET.findall(text_of(response)))


def request_of(user: User) -> HttpRequest:
    """A request of a new login of that person."""
    request = HttpRequest()
    request.session = logged_in(user).session
    request.user = user
    return request


def kept_rows() -> QuerySet[AdminSession]:
    """The rows with kept secrets; logins last longer."""
    return AdminSession.objects.filter(expire_date__lte=timezone.now() + shown_once.KEPT_FOR)


def code_of(user: User) -> str:
    return f"{totp(TOTPDevice.objects.get(user=user).bin_key):06d}"


def turn_on(client: Client, user: User) -> Any:
    client.post(OWN, {"begin": "yes"})
    return client.post(OWN, {"code": code_of(user)})


# --- The page after the POST --------------------------------------------------------------------


def test_rotating_redirects_to_the_page_that_shows_the_secret(as_bob: Client, place: Place) -> None:
    answer = as_bob.post(place.rotate, ROTATE_NOW)
    shown = as_bob.get(place.issued)

    assert (answer.status_code, answer["Location"]) == (302, place.issued)
    assert text_of(answer) == ""
    assert shown.status_code == 200
    (secret,) = secrets_in(shown)
    place.row.refresh_from_db()
    assert place.row.has_secret(secret)
    assert "no-store" in shown["Cache-Control"]


def test_creating_redirects_to_the_page_that_shows_the_secret(as_bob: Client, place: Place) -> None:
    answer = as_bob.post(list_of(type(place.row), "add"), place.add_form)

    row = type(place.row).objects.get(name="new")
    assert (answer.status_code, answer["Location"]) == (302, page_of(row, "issued"))
    (secret,) = secrets_in(as_bob.get(page_of(row, "issued")))
    assert row.has_secret(secret)


def test_a_reload_rotates_nothing_and_explains_it(as_bob: Client, place: Place) -> None:
    as_bob.post(place.rotate, WITH_OVERLAP)
    shown = as_bob.get(place.issued)
    with nothing_written():
        reloaded = as_bob.get(place.issued)

    assert secrets_in(shown)
    assert reloaded.status_code == 200
    assert "cannot be shown again" in text_of(reloaded)
    assert "Opening this page changes nothing" in text_of(reloaded)
    assert place.rotate in text_of(reloaded)
    assert not secrets_in(reloaded)
    assert "no-store" in reloaded["Cache-Control"]


def test_the_page_without_a_rotation_shows_no_secret(as_bob: Client, place: Place) -> None:
    with nothing_written():
        response = as_bob.get(place.issued)

    assert (response.status_code, secrets_in(response)) == (200, set())
    assert "cannot be shown again" in text_of(response)


@pytest.mark.parametrize("method", ["post", "head", "put"])
def test_only_a_get_takes_the_secret(as_bob: Client, place: Place, method: str) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)

    refused = getattr(as_bob, method)(place.issued)

    assert refused.status_code == 405
    assert secrets_in(as_bob.get(place.issued))


def test_a_revoked_key_is_not_offered_to_be_rotated(as_bob: Client, acme: Organisation) -> None:
    key = factories.make_api_key(acme).api_key
    ApiKey.objects.update(revoked_at=timezone.now())

    response = as_bob.get(page_of(key, "issued"))

    assert "cannot be shown again" in text_of(response)
    assert page_of(key, "rotate") not in text_of(response)


# --- Rotating while an earlier secret is still valid --------------------------------------------


def rotated_before(place: Place) -> datetime:
    """Rotates with an overlap; returns its end."""
    place.row.rotate_secret(timedelta(days=7))
    until = place.row.previous_good_until
    assert until is not None
    return until


def test_the_question_says_that_the_earlier_secret_ends_now(as_bob: Client, place: Place) -> None:
    before = text_of(as_bob.get(place.rotate))
    until = rotated_before(place)

    text = text_of(as_bob.get(place.rotate))

    assert "still valid" not in before
    assert f"is still valid until {until:%Y-%m-%d %H:%M} UTC (6" in text
    assert "If you rotate now, it stops working immediately." in text


def test_after_the_overlap_the_question_has_no_warning(as_bob: Client, place: Place) -> None:
    rotated_before(place)
    type(place.row).objects.update(previous_valid_until=timezone.now())

    assert "still valid" not in text_of(as_bob.get(place.rotate))


def test_the_form_with_the_warning_rotates(as_bob: Client, place: Place) -> None:
    rotated_before(place)
    digest = place.digest
    form = as_bob.get(place.rotate).context["form"]

    answer = as_bob.post(place.rotate, {**WITH_OVERLAP, "announced": form["announced"].value()})

    assert answer["Location"] == place.issued
    assert place.digest != digest


def test_a_form_from_before_the_overlap_asks_again_with_the_warning(
    as_bob: Client, place: Place
) -> None:
    """Another administrator rotated while the question was open."""
    rotated_before(place)
    with nothing_written():
        answer = as_bob.post(place.rotate, WITH_OVERLAP)

    assert answer.status_code == 200
    assert "If you rotate now, it stops working immediately." in text_of(answer)


# --- Other tabs, logins and persons -------------------------------------------------------------


def test_in_two_tabs_the_first_to_open_shows_the_newest_secret(
    as_bob: Client, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)
    as_bob.post(place.rotate, ROTATE_NOW)

    first, second = as_bob.get(place.issued), as_bob.get(place.issued)

    (secret,) = secrets_in(first)
    place.row.refresh_from_db()
    assert place.row.has_secret(secret)
    assert secrets_in(second) == set()


def test_two_rows_rotated_in_two_tabs_are_both_shown(
    as_bob: Client, place: Place, acme_hook: Hook
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)
    as_bob.post(page_of(acme_hook, "rotate"), ROTATE_NOW)

    assert secrets_in(as_bob.get(place.issued))
    assert secrets_in(as_bob.get(page_of(acme_hook, "issued")))


def test_a_second_click_on_rotate_leads_to_the_secret_of_the_first(
    as_bob: Client, place: Place
) -> None:
    as_bob.post(place.rotate, WITH_OVERLAP)
    digest = place.digest

    again = as_bob.post(place.rotate, WITH_OVERLAP)

    assert (again.status_code, again["Location"]) == (302, place.issued)
    assert place.digest == digest
    assert secrets_in(as_bob.get(place.issued))


def test_another_administrator_of_the_organisation_gets_no_secret(
    as_bob: Client, ann: User, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)

    of_ann = logged_in(ann).get(place.issued)

    assert (of_ann.status_code, secrets_in(of_ann)) == (200, set())
    assert "only in the login that created it" in text_of(of_ann)
    assert secrets_in(as_bob.get(place.issued))


def test_another_login_of_the_same_person_gets_no_secret(
    as_bob: Client, bob: User, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)

    assert secrets_in(logged_in(bob).get(place.issued)) == set()
    assert secrets_in(as_bob.get(place.issued))


def test_another_organisations_administrator_gets_404(
    as_bob: Client, charlie: User, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)

    refused = logged_in(charlie).get(place.issued)

    assert refused.status_code == 404
    assert "Acme" not in text_of(refused)
    assert secrets_in(as_bob.get(place.issued))


def test_an_ended_login_leads_to_the_login_page_and_the_next_one_gets_no_secret(
    as_bob: Client, bob: User, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)
    as_bob.logout()

    outside = as_bob.get(place.issued)
    as_bob.force_login(bob)
    prove(as_bob, time.time())
    inside = as_bob.get(place.issued)

    assert outside.status_code == 302
    assert outside["Location"].startswith(reverse("admin:login"))
    assert secrets_in(inside) == set()
    assert "cannot be shown again" in text_of(inside)


# --- Where the secret is kept in between --------------------------------------------------------


def test_on_its_way_the_secret_is_in_no_url_cookie_log_or_row_in_clear(
    as_bob: Client, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = as_bob.post(place.rotate, ROTATE_NOW)
        kept = (
            str([session.get_decoded() for session in AdminSession.objects.all()])
            + str(list(AdminSession.objects.values()))
            + str(list(LogEntry.objects.values()))
            + str(everything())
            + str(answer.headers)
            + str(answer.cookies)
        )
        (secret,) = secrets_in(as_bob.get(place.issued))

    assert "sealed" in kept
    assert secret not in kept
    assert secret not in caplog.text


def test_after_five_minutes_the_secret_is_not_shown_and_upkeep_deletes_it(
    as_bob: Client, place: Place
) -> None:
    as_bob.post(place.rotate, ROTATE_NOW)
    assert kept_rows().count() == 1
    kept_rows().update(expire_date=timezone.now() - timedelta(seconds=1))

    response = as_bob.get(place.issued)

    assert secrets_in(response) == set()
    assert forget_admin_sessions() == 1


def test_a_ciphertext_moved_to_another_login_is_not_decrypted(bob: User, ann: User) -> None:
    """Protects against an attacker who can write to the database, and is an administrator."""
    of_bob, of_ann = request_of(bob), request_of(ann)
    shown_once.keep(of_bob, "row", "the secret")
    moved = kept_rows().get()
    shown_once.keep(of_ann, "row", "something else")
    kept_rows().exclude(pk=moved.pk).update(session_data=moved.session_data)

    assert shown_once.take(of_ann, "row") is None
    assert shown_once.take(of_bob, "row") == "the secret"


def test_without_its_pepper_a_kept_secret_is_not_shown(bob: User, settings: Any) -> None:
    request = request_of(bob)
    shown_once.keep(request, "row", "the secret")
    settings.PEPPERS = {99: b"another pepper of thirty-two byte"}

    assert shown_once.take(request, "row") is None


@pytest.mark.django_db(transaction=True)
def test_of_requests_at_once_one_gets_the_secret(bob: User) -> None:
    request = request_of(bob)
    shown_once.keep(request, "row", "the secret")

    taken = at_once(6, lambda _: shown_once.take(request, "row"))

    assert sorted(taken, key=str) == [None] * 5 + ["the secret"]


# --- Recovery codes -----------------------------------------------------------------------------


def test_turning_on_the_second_factor_redirects_to_the_codes(as_bob: Client, bob: User) -> None:
    answer = turn_on(as_bob, bob)
    shown = as_bob.get(answer["Location"])

    assert answer.status_code == 302
    assert answer["Location"].startswith(CODES)
    assert len(set(CODE.findall(text_of(shown)))) == 10
    assert "no-store" in shown["Cache-Control"]


def test_a_reload_shows_no_recovery_codes_and_keeps_those_shown(as_bob: Client, bob: User) -> None:
    turn_on(as_bob, bob)
    as_bob.get(CODES)
    stored = sorted(StaticToken.objects.values_list("token"))

    reloaded = as_bob.get(CODES)

    assert reloaded.status_code == 200
    assert "Recovery codes cannot be shown again" in text_of(reloaded)
    assert CODE.findall(text_of(reloaded)) == []
    assert sorted(StaticToken.objects.values_list("token")) == stored


def test_codes_that_were_replaced_before_they_were_shown_are_not_shown(
    as_bob: Client, bob: User
) -> None:
    turn_on(as_bob, bob)
    second_factor.replace_recovery_codes(bob)

    assert CODE.findall(text_of(as_bob.get(CODES))) == []


def test_another_persons_page_has_none_of_the_codes(as_bob: Client, bob: User, ann: User) -> None:
    turn_on(as_bob, bob)

    of_ann = logged_in(ann).get(CODES)

    assert (of_ann.status_code, CODE.findall(text_of(of_ann))) == (200, [])
    assert len(CODE.findall(text_of(as_bob.get(CODES)))) == 10


def test_another_login_without_the_code_is_sent_to_the_login(as_bob: Client, bob: User) -> None:
    turn_on(as_bob, bob)

    outside = logged_in(bob).get(CODES)

    assert (outside.status_code, text_of(outside)) == (302, "")
    assert outside["Location"].startswith(reverse("admin:login"))


def test_the_way_on_from_the_codes_is_where_the_login_was_going(as_bob: Client, bob: User) -> None:
    as_bob.post(OWN, {"begin": "yes"})

    shown = as_bob.post(OWN, {"code": code_of(bob), "next": list_of(Script)}, follow=True)

    assert f'href="{list_of(Script)}"' in text_of(shown).partition("recovery-codes")[2]


def test_the_way_on_from_the_codes_leads_to_no_other_site(as_bob: Client) -> None:
    shown = as_bob.get(CODES, {"next": "https://evil.example/"})

    assert "evil.example" not in text_of(shown)
