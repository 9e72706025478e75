"""POST /session."""

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client, override_settings
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.flows.api_keys import IssuedApiKey, revoke_api_key
from accounts.flows.revoke_device import revoke_device
from accounts.models import ApiKey, Organisation, User
from sessions_api.models import Session
from tests.factories import (
    api_key_login,
    bearer,
    device_login,
    make_device_token,
    make_organisation,
    open_session,
    post_session,
)


def assert_refused(response: Any, sessions: int = 0) -> None:
    """Asserts the response to any wrong credential, and that nothing else happened."""
    assert response.status_code == 401
    assert response["Content-Type"] == "application/problem+json"
    assert response["Cache-Control"] == "no-store"
    assert "WWW-Authenticate" not in response
    assert response.cookies == {}
    problem = response.json()
    assert problem.pop("requestId") == response["X-Request-Id"]
    assert problem == {
        "type": "urn:moonhook:problem:invalid-credentials",
        "title": "Invalid credentials",
        "status": 401,
        "detail": "The credentials are not valid.",
        "code": "invalid-credentials",
    }
    assert Session.objects.count() == sessions


def test_an_api_key_opens_a_session(client: Client, acme_key: IssuedApiKey) -> None:
    response = post_session(client, api_key_login(acme_key))

    assert response.status_code == 201
    assert response["Cache-Control"] == "no-store"
    session = response.json()
    organisation = acme_key.api_key.organisation
    assert credentials.is_well_formed(session.pop("token"), SecretKind.SESSION)
    created, expires = (parse_datetime(session.pop(key)) for key in ("createdAt", "expiresAt"))
    assert expires - created == timedelta(hours=1)
    assert session.pop("lastUsedAt").endswith("Z")
    assert session == {
        "id": str(Session.objects.get().pk),
        "status": "active",
        "credential": "ApiKey",
        "longLived": False,
        "organisation": {"id": str(organisation.pk), "name": "Acme"},
        "user": None,
        "device": None,
    }


@pytest.mark.parametrize(
    ("email", "recorded"),
    [
        ("ops@example.com", "ops@example.com"),
        ("not an address", "not an address"),
        ("", ""),
        (None, ""),
        ("a\0b", "ab"),
        ("x" * 5000, "x" * 254),
    ],
)
def test_the_email_of_an_api_key_is_recorded_and_never_authenticates(
    client: Client, acme_key: IssuedApiKey, email: str | None, recorded: str
) -> None:
    response = post_session(client, api_key_login(acme_key, email=email))

    assert response.status_code == 201
    assert Session.objects.get().email == recorded


def test_the_email_may_be_absent(client: Client, acme_key: IssuedApiKey) -> None:
    login = api_key_login(acme_key)
    del login["email"]

    assert post_session(client, login).status_code == 201


def test_a_device_token_opens_a_long_lived_session(client: Client, alice: User) -> None:
    device = uuid.uuid4()
    issued = make_device_token(alice, device, label="kitchen")
    session = post_session(client, device_login(issued)).json()

    assert session["credential"] == "Token"
    assert session["longLived"] is True
    assert session["organisation"]["name"] == "Acme"
    assert session["user"] == {"id": str(alice.pk), "email": alice.email, "name": "Alice"}
    assert session["device"] == {"id": str(device), "label": "kitchen"}
    created, expires = (parse_datetime(session[key]) for key in ("createdAt", "expiresAt"))
    assert expires - created == timedelta(days=90)


def test_the_session_of_a_user_of_several_organisations_names_none(
    client: Client, alice: User
) -> None:
    issued = make_device_token(alice)
    make_organisation("Initech").memberships.create(user=alice)

    assert post_session(client, device_login(issued)).json()["organisation"] is None


@pytest.mark.parametrize("email", ["ALICE@Example.com ", "", None])
def test_a_device_login_takes_the_owners_email_in_any_spelling_or_none(
    client: Client, alice: User, email: str | None
) -> None:
    login = device_login(make_device_token(alice), email=email)

    assert post_session(client, login).status_code == 201


def test_a_device_login_with_somebody_elses_email_is_refused(
    client: Client, alice: User, charlie: User
) -> None:
    login = device_login(make_device_token(alice))

    assert_refused(post_session(client, login | {"email": charlie.email}))
    assert post_session(client, login).status_code == 201


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "mhk_000000000000"},
        {"uid": ""},
        {"uid": "mhk_é"},
        {"uid": "mhk_00000000000\0"},
        {"password": "mhs_\0"},
        {"password": ""},
        {"password": "wrong"},
        {"password": credentials.generate_secret(SecretKind.API_KEY)},
        {"credential": "Token"},
    ],
)
def test_a_wrong_api_key_login_is_refused(
    client: Client, acme_key: IssuedApiKey, change: dict[str, str]
) -> None:
    assert_refused(post_session(client, api_key_login(acme_key) | change))
    assert post_session(client, api_key_login(acme_key)).status_code == 201


@pytest.mark.parametrize(
    "change",
    [
        {"uid": str(uuid.uuid4())},
        {"uid": "not-a-uuid"},
        {"password": "wrong"},
        {"password": credentials.generate_secret(SecretKind.DEVICE_TOKEN)},
        {"credential": "ApiKey"},
    ],
)
def test_a_wrong_device_login_is_refused(
    client: Client, alice: User, change: dict[str, str]
) -> None:
    login = device_login(make_device_token(alice))

    assert_refused(post_session(client, login | change))
    assert post_session(client, login).status_code == 201


def test_for_a_malformed_secret_no_credential_is_looked_up(
    client: Client, acme_key: IssuedApiKey, django_assert_num_queries: Any
) -> None:
    mistyped = acme_key.secret[:-1] + ("A" if acme_key.secret[-1] != "A" else "B")

    with django_assert_num_queries(2) as captured:
        response = post_session(client, api_key_login(acme_key, password=mistyped))
    assert_refused(response)
    tables = [query["sql"].split('"')[1] for query in captured.captured_queries]
    assert tables == ["accounts_ratecounter", "accounts_authevent"]


def test_a_known_and_an_unknown_key_cost_the_same_queries(
    client: Client, acme_key: IssuedApiKey, django_assert_num_queries: Any
) -> None:
    wrong = credentials.generate_secret(SecretKind.API_KEY)

    with django_assert_num_queries(3):
        post_session(client, api_key_login(acme_key, password=wrong))
    with django_assert_num_queries(3):
        post_session(client, api_key_login(acme_key, password=wrong, uid="mhk_000000000000"))


def test_a_revoked_key_is_refused(client: Client, acme_key: IssuedApiKey) -> None:
    revoke_api_key(acme_key.api_key)

    assert_refused(post_session(client, api_key_login(acme_key)))


def test_an_expired_key_is_refused(client: Client, acme_key: IssuedApiKey) -> None:
    ApiKey.objects.update(expires_at=timezone.now())

    assert_refused(post_session(client, api_key_login(acme_key)))


def test_a_key_of_an_inactive_organisation_is_refused(
    client: Client, acme: Organisation, acme_key: IssuedApiKey
) -> None:
    acme.is_active = False
    acme.save()

    assert_refused(post_session(client, api_key_login(acme_key)))


def test_a_revoked_device_is_refused(client: Client, alice: User) -> None:
    issued = make_device_token(alice)
    revoke_device(issued.device_token)

    assert_refused(post_session(client, device_login(issued)))


def test_a_device_of_an_inactive_user_is_refused(client: Client, alice: User) -> None:
    issued = make_device_token(alice)
    alice.is_active = False
    alice.save()

    assert_refused(post_session(client, device_login(issued)))


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed-body"),
        (b"", "application/json", 400, "malformed-body"),
        (b"[]", "application/json", 400, "malformed-body"),
        (b'"text"', "application/json", 400, "malformed-body"),
        (b'{"uid": NaN}', "application/json", 400, "malformed-body"),
        (b'{"uid": "\xff"}', "application/json", 400, "malformed-body"),
        (b"[" * 10_000, "application/json", 400, "malformed-body"),
        (b"{}", "text/plain", 415, "unsupported-media-type"),
        (b"uid=1", "application/x-www-form-urlencoded", 415, "unsupported-media-type"),
        (b" " * (16 * 1024 + 1), "application/json", 413, "body-too-large"),
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(
    client: Client, db: None, body: bytes, content_type: str, status: int, code: str
) -> None:
    response = client.post(
        "/session", body, content_type=content_type, headers={"Content-Type": content_type}
    )

    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == code
    assert Session.objects.count() == 0


def test_a_charset_in_the_content_type_is_accepted(client: Client, acme_key: IssuedApiKey) -> None:
    body = json.dumps(api_key_login(acme_key))
    response = client.post("/session", body, content_type="application/json; charset=utf-8")

    assert response.status_code == 201


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"uid": None}, "uid", "null"),
        ({"uid": 5}, "uid", "invalid"),
        ({"password": ["x"]}, "password", "invalid"),
        ({"password": "\ud800"}, "password", "invalid"),
        ({"credential": "Password"}, "credential", "invalid_choice"),
        ({"credential": None}, "credential", "null"),
        ({"email": 7}, "email", "invalid"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_not_repeated(
    client: Client, acme_key: IssuedApiKey, change: dict[str, Any], field: str, code: str
) -> None:
    response = post_session(client, api_key_login(acme_key) | change)

    assert response.status_code == 400
    problem = response.json()
    assert problem["code"] == "validation-error"
    [error] = problem["errors"]
    assert (error["field"], error["code"]) == (field, code)
    assert "Password" not in error["detail"]
    assert Session.objects.count() == 0


def test_wrong_credential_is_answered_with_the_choices(client: Client, db: None) -> None:
    login = {"uid": "u", "password": "p", "credential": "apikey"}

    [error] = post_session(client, login).json()["errors"]

    assert error["detail"] == "Send ApiKey or Token."


def test_missing_fields_are_all_named(client: Client, db: None) -> None:
    problem = post_session(client, {}).json()

    named = {error["field"]: error["code"] for error in problem["errors"]}
    assert named == {"uid": "required", "password": "required", "credential": "required"}


def test_the_cookie_is_for_this_host_only(client: Client, acme_key: IssuedApiKey) -> None:
    with override_settings(IS_PUBLIC_URL_HTTPS=True):
        response = post_session(client, api_key_login(acme_key))

    cookie = response.cookies["__Host-moonhook_session"]
    assert cookie.value == response.json()["token"]
    assert (cookie["secure"], cookie["httponly"]) == (True, True)
    assert (cookie["samesite"], cookie["path"], cookie["domain"]) == ("Lax", "/", "")


def test_over_plain_http_the_cookie_has_the_plain_name(
    client: Client, acme_key: IssuedApiKey
) -> None:
    response = post_session(client, api_key_login(acme_key))

    cookie = response.cookies["moonhook_session"]
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == ("", True, "Lax")


def test_a_session_presented_by_cookie_is_replaced(client: Client, acme_key: IssuedApiKey) -> None:
    first = post_session(client, api_key_login(acme_key)).json()
    second = post_session(client, api_key_login(acme_key)).json()

    assert [str(session.pk) for session in Session.objects.all()] == [second["id"]]
    assert first["id"] != second["id"]


def test_a_failed_login_leaves_the_presented_session_alone(
    client: Client, acme_key: IssuedApiKey
) -> None:
    post_session(client, api_key_login(acme_key))

    assert_refused(post_session(client, api_key_login(acme_key, password="wrong")), sessions=1)


def test_a_stale_bearer_token_does_not_prevent_a_login(
    client: Client, acme_key: IssuedApiKey
) -> None:
    response = post_session(client, api_key_login(acme_key), **bearer("mhx_gone"))

    assert response.status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_a_login_from_another_site_is_refused(
    client: Client, acme_key: IssuedApiKey, headers: dict[str, str]
) -> None:
    response = post_session(client, api_key_login(acme_key), **headers)

    assert response.status_code == 403
    assert response.json()["code"] == "cross-origin"
    assert response.cookies == {}
    assert Session.objects.count() == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://testserver"},
    ],
)
def test_a_login_from_our_own_page_or_without_an_origin_is_accepted(
    client: Client, acme_key: IssuedApiKey, headers: dict[str, str]
) -> None:
    assert post_session(client, api_key_login(acme_key), **headers).status_code == 201


def test_beyond_the_cap_of_a_key_the_least_recently_used_session_ends(
    acme_key: IssuedApiKey,
) -> None:
    with override_settings(SESSIONS_PER_API_KEY=2):
        tokens = [open_session(api_key_login(acme_key)) for _ in range(3)]

    alive = [Session.objects.find_live(token) is not None for token in tokens]
    assert alive == [False, True, True]


def test_a_device_has_at_most_as_many_sessions_as_its_cap(alice: User) -> None:
    issued = make_device_token(alice)
    with override_settings(SESSIONS_PER_DEVICE_TOKEN=2):
        tokens = [open_session(device_login(issued)) for _ in range(3)]

    alive = [Session.objects.find_live(token) is not None for token in tokens]
    assert alive == [False, True, True]


def test_no_token_is_readable_in_the_database(acme_key: IssuedApiKey) -> None:
    token = open_session(api_key_login(acme_key))
    stored = str(list(Session.objects.values())) + str(list(ApiKey.objects.values()))

    assert token not in stored
    assert acme_key.secret not in stored
