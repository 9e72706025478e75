"""OAuth 2.0 device authorization: what a program sees of it (RFC 8628, RFC 8414)."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client, override_settings
from django.utils import timezone

from accounts.flows.organisations import remove_member
from accounts.flows.users import update_user
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Membership, Organisation, Role, User
from core.http.origin import NOWHERE
from sessions_api.device_authorization.flows import forget_expired_logins, refuse_login
from sessions_api.models import DeviceAuthorization, Session
from tests.device_logins import (
    CLIENT,
    GRANT_TYPE,
    START,
    TOKEN,
    approve,
    error_of,
    let_time_pass,
    log_in,
    poll,
    post_form,
    start,
)
from tests.factories import bearer, post_session, work
from tests.written import nothing_written

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob(bob: User) -> User:
    bob.is_staff = True
    bob.save()
    return bob


@pytest.fixture
def nothing_made(acme: Organisation) -> Any:
    def check() -> None:
        assert ApiKey.objects.count() == Session.objects.count() == 0
        assert not AuthEvent.objects.filter(
            kind__in=[AuthEventKind.API_KEY_ISSUED, AuthEventKind.SESSION_OPENED]
        ).exists()

    return check


# --- Metadata and start --------------------------------------------------------------------------


def test_metadata_says_where_to_log_in_and_what_to_ask_for(settings: Any) -> None:
    answer = Client().get("/.well-known/oauth-authorization-server")

    document = answer.json()
    assert answer.status_code == 200
    assert document["issuer"] == settings.PUBLIC_URL
    assert document["device_authorization_endpoint"] == f"{settings.PUBLIC_URL}{START}"
    assert document["token_endpoint"] == f"{settings.PUBLIC_URL}{TOKEN}"
    assert document["grant_types_supported"] == [GRANT_TYPE]
    assert document["token_endpoint_auth_methods_supported"] == ["none"]
    assert document["response_types_supported"] == []
    assert {"ReadScripts", "All"} <= set(document["scopes_supported"])


def test_start_gives_codes_once_and_stores_their_digests(settings: Any) -> None:
    answer = post_form(START, {"client_id": CLIENT, "scope": "ReadScripts Publish"})

    codes, row = answer.json(), DeviceAuthorization.objects.get()
    page = f"{settings.PUBLIC_URL}/admin/device/"
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert len(codes["device_code"]) == 43
    assert set(codes["user_code"]) <= set("BCDFGHJKLMNPQRSTVWXZ-")
    assert (len(codes["user_code"]), codes["user_code"][4]) == (9, "-")
    assert codes["verification_uri"] == page
    assert codes["verification_uri_complete"] == f"{page}?user_code={codes['user_code']}"
    assert (codes["expires_in"], codes["interval"]) == (600, 5)
    stored = str(DeviceAuthorization.objects.values().get())
    assert codes["device_code"] not in stored
    assert codes["user_code"].replace("-", "") not in stored
    assert (row.client_id, row.scopes) == (CLIENT, ["ReadScripts", "Publish"])


def test_unknown_parameters_are_ignored() -> None:
    assert post_form(START, f"client_id={CLIENT}&x=1&x=2&=&=").status_code == 200


def test_start_without_scope_asks_for_reading_scripts() -> None:
    post_form(START, {"client_id": CLIENT})

    assert DeviceAuthorization.objects.get().scopes == ["ReadScripts"]


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ("", "invalid_request"),
        ("client_id=", "invalid_request"),
        ("client_id=a&client_id=b", "invalid_request"),
        ("client_id=%ff", "invalid_request"),
        ("client_id=" + "a" * 65, "invalid_client"),
        ("client_id=a%00b", "invalid_client"),
        ("client_id=a%0Ab", "invalid_client"),
        ("client_id=%D0%B0", "invalid_client"),
        ("client_id=+", "invalid_client"),
        ("client_id=a&scope=Everything", "invalid_scope"),
        ("client_id=a&scope=readscripts", "invalid_scope"),
        ("client_id=a&scope=ReadScripts,Publish", "invalid_scope"),
        ("&".join(f"a{number}=1" for number in range(21)), "invalid_request"),
    ],
)
def test_wrong_start_is_refused_and_makes_no_row(form: str, error: str) -> None:
    with nothing_written():
        answer = post_form(START, form)

    assert error_of(answer) == error


@pytest.mark.parametrize("path", [START, TOKEN])
def test_only_forms_are_read(path: str) -> None:
    with nothing_written():
        answer = post_form(path, '{"client_id": "a"}', content_type="application/json")

    assert error_of(answer) == "invalid_request"


@pytest.mark.parametrize("path", [START, TOKEN])
def test_what_oauth_has_no_error_for_is_a_problem(path: str) -> None:
    wrong_method = Client().get(path, {"client_id": CLIENT})
    too_large = post_form(path, "a=" + "b" * 16 * 1024)

    assert (wrong_method.status_code, wrong_method["Allow"]) == (405, "POST")
    assert wrong_method.json()["code"] == "method-not-allowed"
    assert too_large.json()["code"] == "body-too-large"
    assert DeviceAuthorization.objects.count() == 0


def test_a_client_address_starts_ten_logins_in_ten_minutes() -> None:
    for _ in range(10):
        start()

    eleventh = post_form(START, {"client_id": CLIENT})
    elsewhere = post_form(START, {"client_id": CLIENT}, REMOTE_ADDR="192.0.2.7")

    assert (eleventh.status_code, eleventh.json()["code"]) == (429, "rate-limited")
    assert 0 < int(eleventh["Retry-After"]) <= 600
    assert elsewhere.status_code == 200
    assert DeviceAuthorization.objects.count() == 11


# --- Polling -------------------------------------------------------------------------------------


def test_poll_before_an_answer_is_pending_then_too_early(nothing_made: Any) -> None:
    started = start()

    first, second = poll(started), poll(started)

    assert (error_of(first), error_of(second)) == ("authorization_pending", "slow_down")
    nothing_made()


def test_an_early_poll_lengthens_the_interval_for_good() -> None:
    started = start()
    poll(started)
    assert error_of(poll(started)) == "slow_down"

    let_time_pass(started, 6)
    too_early = poll(started)
    let_time_pass(started, 15)
    in_time = poll(started)
    let_time_pass(started, 14)
    early_again = poll(started)

    assert error_of(too_early) == "slow_down"
    assert error_of(in_time) == "authorization_pending"
    assert error_of(early_again) == "slow_down"


def test_polls_at_the_interval_are_never_told_to_slow_down() -> None:
    started = start()

    answers = []
    for _ in range(3):
        answers.append(error_of(poll(started)))
        let_time_pass(started, 5)

    assert answers == ["authorization_pending"] * 3


def test_an_approved_login_gets_key_session_and_organisation(acme: Organisation, bob: User) -> None:
    started = start("ReadScripts Publish")
    approve(started, bob, acme)

    answer = poll(started)

    document, key = answer.json(), ApiKey.objects.get()
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert document["token_type"] == "Bearer"
    assert document["scope"] == "ReadScripts Publish"
    assert document["organisation"] == {"id": str(acme.pk), "name": "Acme"}
    assert 3590 < document["expires_in"] <= 3600
    assert (document["key"], key.name, key.approved_by) == (key.key, CLIENT, bob)
    left = key.expires_at - timezone.now()
    assert timedelta(days=89, hours=23) < left <= timedelta(days=90)
    session = Client().get("/session", headers=bearer(document["access_token"]))
    assert session.json()["organisation"] == document["organisation"]


def test_the_pair_opens_sessions_later(acme: Organisation, bob: User) -> None:
    document = log_in(bob, acme)

    login = {"uid": document["key"], "password": document["secret"], "credential": "ApiKey"}
    assert post_session(Client(), login).status_code == 201


def test_a_code_is_redeemed_once(acme: Organisation, bob: User) -> None:
    started = start()
    approve(started, bob, acme)
    assert poll(started).status_code == 200

    with nothing_written():
        replay = poll(started)

    assert error_of(replay) == "invalid_grant"
    assert ApiKey.objects.count() == Session.objects.count() == 1


def test_an_approved_code_is_not_another_clients(
    acme: Organisation, bob: User, nothing_made: Any
) -> None:
    started = start()
    approve(started, bob, acme)

    with nothing_written():
        answer = poll(started, client_id="somebody-else")

    unknown = poll(started._replace(device_code="x" * 43))
    assert error_of(answer) == "invalid_grant"
    assert answer.content == unknown.content
    nothing_made()
    assert poll(started).status_code == 200


def test_a_refused_login_is_denied(bob: User, nothing_made: Any) -> None:
    started = start()
    refuse_login(started.row, by=bob, origin=NOWHERE)

    with nothing_written():
        answer = poll(started)

    assert error_of(answer) == "access_denied"
    nothing_made()


def test_an_expired_login_is_told_so_even_if_it_was_approved(
    acme: Organisation, bob: User, nothing_made: Any
) -> None:
    pending, approved = start(), start()
    approve(approved, bob, acme)
    let_time_pass(pending, 601)
    let_time_pass(approved, 601)

    with nothing_written():
        answers = [error_of(poll(pending)), error_of(poll(approved))]

    assert answers == ["expired_token", "expired_token"]
    nothing_made()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"grant_type": ""}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
        ({"client_id": ""}, "invalid_request"),
        ({"client_id": "a%07"}, "invalid_client"),
        ({"device_code": ""}, "invalid_request"),
        ({"device_code": "unknown"}, "invalid_grant"),
        ({"device_code": "%00"}, "invalid_grant"),
    ],
)
def test_a_wrong_poll_is_refused_and_nothing_happens(
    acme: Organisation, bob: User, nothing_made: Any, changes: dict[str, str], error: str
) -> None:
    started = start()
    approve(started, bob, acme)

    with nothing_written():
        answer = poll(started, **changes)

    assert error_of(answer) == error
    nothing_made()
    assert poll(started).status_code == 200


# --- Between approval and redemption -------------------------------------------------------------


def test_the_scopes_are_those_of_the_redemption(acme: Organisation, bob: User) -> None:
    started = start("ReadScripts Publish")
    approve(started, bob, acme)
    update_user(acme, bob, role=Role.VIEWER)

    document = poll(started).json()

    assert document["scope"] == "ReadScripts"
    assert ApiKey.objects.get().scopes == ["ReadScripts"]


def test_an_approver_without_any_of_the_scopes_gives_nothing(
    acme: Organisation, bob: User, nothing_made: Any
) -> None:
    started = start("Publish")
    approve(started, bob, acme)
    Membership.objects.filter(user=bob).update(role=Role.VIEWER)

    assert error_of(poll(started)) == "access_denied"
    nothing_made()
    Membership.objects.filter(user=bob).update(role=Role.ADMINISTRATOR)
    assert error_of(poll(started)) == "access_denied"


@pytest.mark.parametrize("what", ["membership", "active", "staff", "organisation"])
def test_an_approver_who_has_left_gives_nothing(
    acme: Organisation, bob: User, nothing_made: Any, what: str
) -> None:
    started = start()
    approve(started, bob, acme)
    if what == "membership":
        remove_member(acme, bob)
    elif what == "organisation":
        Organisation.objects.update(is_active=False)
    else:
        User.objects.filter(pk=bob.pk).update(**{f"is_{what}": False})

    assert error_of(poll(started)) == "access_denied"
    nothing_made()


@override_settings(API_KEYS_PER_ORGANISATION=1)
def test_an_organisation_without_room_for_a_key_denies(acme: Organisation, bob: User) -> None:
    started = start()
    approve(started, bob, acme)
    log_in(bob, acme)

    with nothing_written(besides=DeviceAuthorization):
        answer = poll(started)

    assert error_of(answer) == "access_denied"
    assert "at most 1 API keys" in answer.json()["error_description"]
    assert ApiKey.objects.count() == 1


# --- What people learn of it ---------------------------------------------------------------------


def test_approver_is_told_by_mail_without_the_programs_markup(
    acme: Organisation, bob: User
) -> None:
    started = start(client_id="click http://evil.example/")
    approve(started, bob, acme)

    poll(started, client_id="click http://evil.example/")
    work()

    [message] = mail.outbox
    assert message.to == ["bob@example.com"]
    assert "Acme" in message.subject
    assert "/admin/device/" in message.body
    assert "evil.example" not in message.body


def test_audit_names_who_approved_and_what_came_of_it(acme: Organisation, bob: User) -> None:
    log_in(bob, acme, "ReadScripts", "Publish")

    events = AuthEvent.objects.filter(organisation=acme).order_by("pk")
    kinds = [(event.kind, event.actor_label, event.reason) for event in events]
    assert kinds == [
        ("program-login.approved", "bob@example.com", "ReadScripts Publish"),
        ("api-key.issued", "bob@example.com", "ReadScripts Publish"),
        ("session.opened", CLIENT, ""),
    ]
    assert events[0].subject_label == CLIENT


def test_old_logins_are_forgotten(acme: Organisation, bob: User) -> None:
    new, expired, old = start(), start(), start()
    let_time_pass(expired, 601)
    let_time_pass(old, 600 + 3601)

    assert forget_expired_logins() == 1
    assert set(DeviceAuthorization.objects.all()) == {new.row, expired.row}
