from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey
from accounts.models import AuthEvent, AuthEventKind, Organisation, User
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.postgresql

LOGIN = reverse("admin:login")
PASSWORD = "a password of bob"


@pytest.fixture
def bob(bob: User) -> User:
    bob.set_password(PASSWORD)
    bob.save()
    return bob


def log_in(email: str, password: str, **headers: str) -> Any:
    return Client().post(LOGIN, {"username": email, "password": password}, headers=headers)


def test_a_login_is_recorded(bob: User, acme: Organisation) -> None:
    response = log_in("BOB@example.com", PASSWORD, user_agent="a browser")

    event = AuthEvent.objects.get()
    assert response.status_code == 302
    assert (event.kind, event.reason) == (AuthEventKind.ADMIN_LOGIN, "")
    assert (event.user, event.organisation, event.email) == (bob, acme, bob.email)
    assert (event.client_address, event.user_agent) == ("127.0.0.1", "a browser")


def test_a_failed_login_is_recorded_without_the_password(bob: User, acme: Organisation) -> None:
    response = log_in(bob.email, "not the password")

    event = AuthEvent.objects.get()
    assert response.status_code == 200
    assert (event.kind, event.reason) == (AuthEventKind.ADMIN_LOGIN_REFUSED, "wrong-credentials")
    assert (event.user, event.organisation) == (bob, acme)
    assert "not the password" not in str(AuthEvent.objects.values())


def test_a_refused_login_of_a_user_who_is_not_staff_is_recorded(alice: User) -> None:
    alice.set_password("a password of alice")
    alice.save()

    response = log_in(alice.email, "a password of alice")

    assert response.status_code == 200
    assert AuthEvent.objects.get().reason == "not-staff"


def test_a_password_typed_as_the_user_name_is_not_kept(db: None) -> None:
    log_in("hunter2 hunter2", "x")

    assert AuthEvent.objects.get().email == ""
    assert "hunter2" not in str(AuthEvent.objects.values())


def test_failed_logins_of_unknown_users_are_for_superusers_only(
    as_bob: Client, as_root: Client, acme: Organisation
) -> None:
    log_in("stranger@example.com", "a guess")
    event = AuthEvent.objects.get()

    assert page_of(event) not in text_of(as_bob.get(list_of(AuthEvent)))
    assert as_bob.get(page_of(event)).status_code == 404
    assert "stranger@example.com" in text_of(as_root.get(list_of(AuthEvent)))
    assert "wrong-credentials" in text_of(as_root.get(page_of(event)))


def test_bob_sees_what_happened_at_acme(as_bob: Client, acme_key: IssuedApiKey) -> None:
    text = text_of(as_bob.get(list_of(AuthEvent)))

    assert "api-key.issued" in text
    assert acme_key.api_key.key in text
    assert acme_key.secret not in text


@pytest.mark.parametrize(("kind", "is_found"), [("api-key.issued", True), ("admin.login", False)])
def test_the_list_is_filtered_by_kind(
    as_bob: Client, acme_key: IssuedApiKey, kind: str, is_found: bool
) -> None:
    text = text_of(as_bob.get(list_of(AuthEvent), {"kind__exact": kind}))

    assert (page_of(AuthEvent.objects.get()) in text) is is_found


@pytest.mark.parametrize(("days", "is_found"), [(-1, True), (1, False)])
def test_the_list_is_filtered_by_time(
    as_bob: Client, acme_key: IssuedApiKey, days: int, is_found: bool
) -> None:
    since = timezone.now() + timedelta(days=days)
    typed = {"at_from_0": f"{since:%Y-%m-%d}", "at_from_1": "00:00"}

    text = text_of(as_bob.get(list_of(AuthEvent), typed))

    assert (page_of(AuthEvent.objects.get()) in text) is is_found


def test_an_event_is_found_by_the_complete_credential_id(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    event, key = AuthEvent.objects.get(), acme_key.api_key.key

    assert page_of(event) in text_of(as_bob.get(list_of(AuthEvent), {"q": key}))
    assert page_of(event) not in text_of(as_bob.get(list_of(AuthEvent), {"q": key[:-1]}))


def test_an_event_is_found_by_the_request_that_made_it(as_root: Client, bob: User) -> None:
    response = log_in(bob.email, PASSWORD)
    event = AuthEvent.objects.get()

    assert event.request_id == response["X-Request-Id"]
    found = as_root.get(list_of(AuthEvent), {"q": event.request_id})
    assert page_of(event) in text_of(found)


def test_the_list_counts_the_rows_of_all_pages(as_bob: Client, acme_key: IssuedApiKey) -> None:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        as_bob.get(list_of(AuthEvent))

    counts = [
        query["sql"]
        for query in queries
        if "accounts_authevent" in query["sql"] and "COUNT(" in query["sql"]
    ]
    assert counts
    assert all("LIMIT 10001" in sql for sql in counts)


def test_an_event_is_never_changed_nor_deleted(as_root: Client, acme_key: IssuedApiKey) -> None:
    event = AuthEvent.objects.get()

    changed = as_root.post(page_of(event), {"reason": "other"})
    deleted = as_root.post(page_of(event, "delete"), {"post": "yes"})

    assert (changed.status_code, deleted.status_code) == (403, 403)
    assert AuthEvent.objects.get().reason == "All"
