"""GET and DELETE /session, and everything that ends a session."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from accounts import credentials
from accounts.credentials import SecretKind
from accounts.flows.api_keys import IssuedApiKey, revoke_api_key
from accounts.flows.organisations import remove_member
from accounts.flows.revoke_device import revoke_device
from accounts.models import ApiKey, DeviceToken, Organisation, User
from sessions_api.models import Session
from tests import factories
from tests.client import Client
from tests.factories import (
    api_key_login,
    bearer,
    device_login,
    make_device_token,
    open_session,
    post_session,
)


@pytest.fixture
def alice_token(alice: User) -> str:
    return open_session(device_login(make_device_token(alice)))


def get_session(token: str) -> Any:
    return Client().get("/session", headers=bearer(token))


def assert_ended(token: str) -> None:
    response = get_session(token)

    assert response.status_code == 401
    assert response.json()["code"] == "session-invalid"
    assert response["WWW-Authenticate"] == 'Bearer realm="moonhook", error="invalid_token"'


def test_a_session_is_shown_without_its_token(client: Client, acme_key: IssuedApiKey) -> None:
    opened = post_session(client, api_key_login(acme_key)).json()
    token = opened.pop("token")
    response = get_session(token)

    assert response.status_code == 200
    assert response["Cache-Control"] == "no-store"
    assert response.json() == opened


@pytest.mark.parametrize(
    ("authorization", "detail"),
    [
        ("Bearer mhs_x", "This is an API secret. Open a session first: POST /session."),
        ("mhs_x", "This is an API secret. Open a session first: POST /session."),
        ("Bearer mhk_x", "This is an API key's id. Open a session first: POST /session."),
        ("Bearer mht_x", "This is a device token. Open a session first: POST /session."),
        ("Bearer mhc_x", "This is a hook's call token, which opens no session."),
        ("mhx_x", "The scheme Bearer is missing. Send Authorization: Bearer mhx_…"),
        ("Basic dTpw", "The scheme Bearer is missing. Send Authorization: Bearer mhx_…"),
        ("Bearer mhx_x", "The session is unknown, has expired or was ended."),
        ("Bearer ", "The scheme Bearer is missing. Send Authorization: Bearer mhx_…"),
    ],
)
def test_refusal_says_what_the_presented_text_is(
    client: Client, db: None, authorization: str, detail: str
) -> None:
    headers = {"Authorization": authorization}

    session = client.get("/session", headers=headers)
    query = client.post(
        "/admin/graphql", {"query": "{ __typename }"}, "application/json", headers=headers
    )

    assert (session.status_code, session.json()["code"]) == (401, "session-invalid")
    assert session.json()["detail"] == detail
    assert query.status_code == 401
    [error] = query.json()["errors"]
    assert (error["message"], error["extensions"]["code"]) == (detail, "UNAUTHENTICATED")
    assert Session.objects.count() == 0


@pytest.mark.parametrize("method", ["get", "head"])
def test_every_answer_names_the_methods_and_is_not_stored(
    client: Client, acme_token: str, method: str
) -> None:
    shown = getattr(client, method)("/session", headers=bearer(acme_token))
    refused = getattr(client, method)("/session", headers=bearer(acme_token[:-1]))

    assert (shown.status_code, refused.status_code) == (200, 401)
    for response in (shown, refused):
        assert response["Allow"] == "GET, HEAD, POST, DELETE"
        assert response["Cache-Control"] == "no-store"


def leave_all(alice: User) -> None:
    alice.memberships.all().delete()


def stay(alice: User) -> None:
    pass


def join_another(alice: User) -> None:
    factories.make_organisation("Globex").memberships.create(user=alice)


@pytest.mark.parametrize(
    ("change", "shown"), [(leave_all, None), (stay, "Acme"), (join_another, None)]
)
def test_a_device_session_shows_the_only_organisation_of_its_user(
    alice: User, alice_token: str, change: Callable[[User], None], shown: str | None
) -> None:
    change(alice)

    document = get_session(alice_token).json()

    organisation = document["organisation"]
    assert (organisation and organisation["name"]) == shown
    assert document["user"]["email"] == "alice@example.com"


def test_showing_a_session_takes_one_query_and_fetches_no_digest(
    alice_token: str, acme_token: str, django_assert_num_queries: Any
) -> None:
    for token in (alice_token, acme_token):
        with django_assert_num_queries(1) as statements:
            assert get_session(token).status_code == 200

        columns = statements[0]["sql"].partition(" FROM ")[0]
        assert "digest" not in columns
        assert "password" not in columns


def test_the_cookie_presents_the_session_too(client: Client, acme_key: IssuedApiKey) -> None:
    opened = post_session(client, api_key_login(acme_key)).json()

    assert client.get("/session").json()["id"] == opened["id"]


def test_the_header_wins_over_the_cookie(
    client: Client, acme_key: IssuedApiKey, alice_token: str
) -> None:
    post_session(client, api_key_login(acme_key))

    by_header = client.get("/session", headers=bearer(alice_token))
    assert by_header.json()["credential"] == "Token"
    assert client.get("/session", headers=bearer("mhx_wrong")).status_code == 401


def test_a_request_without_a_session_is_not_authenticated(client: Client, db: None) -> None:
    response = client.get("/session")

    assert response.status_code == 401
    assert response.json()["code"] == "not-authenticated"
    assert response["WWW-Authenticate"] == 'Bearer realm="moonhook"'


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer",
        "Bearer ",
        "Bearer mhx_" + "0" * 46,
        pytest.param("Bearer " + credentials.generate_secret(SecretKind.SESSION), id="unknown"),
        "Basic bWh4Og==",
        "Bearer é",
    ],
)
def test_an_invalid_session_token_is_refused(
    client: Client, acme_token: str, authorization: str
) -> None:
    response = client.get("/session", headers={"Authorization": authorization})

    assert response.status_code == 401
    assert response.json()["code"] == "session-invalid"
    assert get_session(acme_token).status_code == 200


def test_deleting_ends_the_session_but_not_its_key(
    client: Client, acme_key: IssuedApiKey, acme_token: str
) -> None:
    response = client.delete("/session", headers=bearer(acme_token))

    assert response.status_code == 204
    assert response.content == b""
    assert response.cookies["moonhook_session"].value == ""
    assert response.cookies["moonhook_session"]["max-age"] == 0
    assert_ended(acme_token)
    assert post_session(client, api_key_login(acme_key)).status_code == 201


def test_a_session_cannot_be_ended_twice(client: Client, acme_token: str) -> None:
    client.delete("/session", headers=bearer(acme_token))

    assert client.delete("/session", headers=bearer(acme_token)).status_code == 401


@pytest.mark.parametrize("method", ["put", "patch", "options", "trace"])
def test_other_methods_are_not_allowed(client: Client, db: None, method: str) -> None:
    response = getattr(client, method)("/session")

    assert response.status_code == 405
    assert response.json()["code"] == "method-not-allowed"
    assert response["Allow"] == "GET, HEAD, POST, DELETE"


def test_another_sites_page_cannot_end_the_session_of_a_cookie(
    client: Client, acme_key: IssuedApiKey
) -> None:
    post_session(client, api_key_login(acme_key))
    response = client.delete("/session", headers={"Sec-Fetch-Site": "cross-site"})

    assert response.status_code == 403
    assert response.json()["code"] == "cross-origin"
    assert Session.objects.count() == 1


def test_another_sites_page_may_use_a_bearer_token_it_has(client: Client, acme_token: str) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", **bearer(acme_token)}

    assert client.delete("/session", headers=headers).status_code == 204


# --- Ending sessions ---------------------------------------------------------------------------


def revoke_the_key(key: ApiKey) -> None:
    revoke_api_key(key)


def expire_the_key(key: ApiKey) -> None:
    ApiKey.objects.update(expires_at=timezone.now())


def deactivate_the_organisation(key: ApiKey) -> None:
    key.organisation.is_active = False
    key.organisation.save()


def switch_the_organisation_off_and_on(key: ApiKey) -> None:
    deactivate_the_organisation(key)
    key.organisation.is_active = True
    key.organisation.save()


def delete_the_organisation(key: ApiKey) -> None:
    Organisation.objects.filter(pk=key.organisation_id).delete()


@pytest.mark.parametrize(
    "end",
    [
        revoke_the_key,
        expire_the_key,
        deactivate_the_organisation,
        switch_the_organisation_off_and_on,
        delete_the_organisation,
    ],
)
def test_a_session_ends_immediately_with_its_key_or_organisation(
    acme_key: IssuedApiKey, acme_token: str, end: Callable[[ApiKey], None]
) -> None:
    assert get_session(acme_token).status_code == 200

    end(acme_key.api_key)
    assert_ended(acme_token)


def revoke_the_device(user: User) -> None:
    revoke_device(DeviceToken.objects.get())


def deactivate_the_user(user: User) -> None:
    user.is_active = False
    user.save()


def switch_the_user_off_and_on(user: User) -> None:
    deactivate_the_user(user)
    user.is_active = True
    user.save()


def log_in_again_on_the_same_device(user: User) -> None:
    make_device_token(user, DeviceToken.objects.get().device)


def deactivate_the_only_organisation(user: User) -> None:
    organisation = user.organisations.get()
    organisation.is_active = False
    organisation.save()


def switch_the_only_organisation_off_and_on(user: User) -> None:
    deactivate_the_only_organisation(user)
    organisation = user.organisations.get()
    organisation.is_active = True
    organisation.save()


@pytest.mark.parametrize(
    "end",
    [
        revoke_the_device,
        deactivate_the_only_organisation,
        switch_the_only_organisation_off_and_on,
        deactivate_the_user,
        switch_the_user_off_and_on,
        log_in_again_on_the_same_device,
    ],
)
def test_a_device_session_ends_immediately_with_its_device_user_or_organisation(
    alice: User, alice_token: str, end: Callable[[User], None]
) -> None:
    assert get_session(alice_token).status_code == 200

    end(alice)
    assert_ended(alice_token)


def test_leaving_an_organisation_brings_no_session_back_that_ended_with_it(
    acme: Organisation, alice: User
) -> None:
    token = open_session(device_login(make_device_token(alice)))
    acme.is_active = False
    acme.save()
    remove_member(acme, alice)
    while_off = Client().get("/session", headers=bearer(token)).status_code
    acme.is_active = True
    acme.save()

    assert (while_off, Client().get("/session", headers=bearer(token)).status_code) == (401, 401)


def test_leaving_a_reactivated_organisation_restores_no_session(
    acme: Organisation, alice: User
) -> None:
    ended = open_session(device_login(make_device_token(alice)))
    acme.is_active = False
    acme.save()
    acme.is_active = True
    acme.save()
    opened = open_session(device_login(make_device_token(alice)))
    remove_member(acme, alice)

    assert Client().get("/session", headers=bearer(ended)).status_code == 401
    assert Client().get("/session", headers=bearer(opened)).status_code == 200


def test_leaving_one_organisation_keeps_the_sessions_of_members_of_others(
    acme: Organisation, globex: Organisation, alice: User
) -> None:
    alice.memberships.create(organisation=globex)
    token = open_session(device_login(make_device_token(alice)))
    acme.is_active = False
    acme.save()
    remove_member(acme, alice)

    assert Client().get("/session", headers=bearer(token)).status_code == 200


def test_a_session_opened_after_reactivation_is_valid(
    acme_key: IssuedApiKey, acme_token: str
) -> None:
    switch_the_organisation_off_and_on(acme_key.api_key)

    assert get_session(open_session(api_key_login(acme_key))).status_code == 200


# --- Lifetimes ---------------------------------------------------------------------------------


def move_back(**fields: timedelta) -> None:
    """Moves the times of the only session into the past."""
    session = Session.objects.get()
    changes = {field: getattr(session, field) - age for field, age in fields.items()}
    Session.objects.update(**changes)


def test_an_idle_session_expires(acme_token: str) -> None:
    move_back(
        created_at=timedelta(hours=1),
        last_used_at=timedelta(hours=1),
        expires_at=timedelta(hours=1),
    )

    assert_ended(acme_token)


def test_use_extends_the_idle_limit(acme_token: str) -> None:
    age = timedelta(minutes=50)
    move_back(created_at=age, last_used_at=age, expires_at=age)
    assert get_session(acme_token).status_code == 200

    remaining = Session.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=59) < remaining <= timedelta(hours=1)


def test_use_does_not_extend_the_absolute_limit(acme_token: str) -> None:
    move_back(created_at=timedelta(hours=11, minutes=30), last_used_at=timedelta(minutes=30))
    assert get_session(acme_token).status_code == 200

    remaining = Session.objects.get().expires_at - timezone.now()
    assert remaining <= timedelta(minutes=30)


def test_use_is_written_at_most_once_in_five_minutes(
    acme_token: str, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(1):
        get_session(acme_token)
    move_back(last_used_at=settings.SESSION_USE_WRITTEN_EVERY)
    with django_assert_num_queries(2):
        get_session(acme_token)


def test_a_session_from_before_a_pepper_rotation_stays_valid(acme_token: str) -> None:
    old = dict(settings.PEPPERS)
    with override_settings(PEPPERS={99: b"9" * 32, **old}):
        assert get_session(acme_token).status_code == 200


def test_an_unexpected_error_is_masked(
    client: Client, acme_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*arguments: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("sessions_api.views.session_document", explode)
    response = get_session(acme_token)

    assert response.status_code == 500
    assert response.json()["code"] == "internal-error"
    assert "secret detail" not in response.content.decode()
