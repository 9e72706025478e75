import html
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session as AdminSession
from django.test import Client
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey, revoke_api_key
from accounts.models import ApiKey, AuthEvent, AuthEventKind, Organisation, User
from sessions_api.models import Session
from tests import factories
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, text_of
from tests.device_logins import approved, child_of


def issue(client: Client, organisation: Organisation, **changes: str) -> Any:
    form = {
        "organisation": str(organisation.pk),
        "name": "warehouse",
        "preset": "everything",
    } | changes
    return client.post(list_of(ApiKey, "add"), form, follow=True)


def rotate(client: Client, api_key: ApiKey, *, overlap: str = "0") -> Any:
    form = {**CONFIRMED, "overlap_seconds": overlap}
    return client.post(page_of(api_key, "rotate"), form, follow=True)


def secret_in(response: Any) -> str:
    found = re.search(r"mhs_\w{46}", text_of(response))
    assert found is not None
    return found[0]


def test_bob_creates_a_key_that_opens_a_session(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    response = issue(as_bob, acme)

    key = ApiKey.objects.get()
    assert response.status_code == 200
    assert (key.organisation, key.created_by) == (acme, bob)
    body = re.search(r"-d '(\{.*?\})'", html.unescape(text_of(response)))
    assert body is not None
    login = json.loads(body[1])
    assert login["password"] == secret_in(response)
    assert factories.open_session(login).startswith("mhx_")


def test_the_secret_is_only_in_that_response(as_bob: Client, acme: Organisation) -> None:
    response = issue(as_bob, acme)

    secret = secret_in(response)
    assert "no-store" in response["Cache-Control"]
    assert secret not in str(response.cookies)
    assert secret not in str([session.get_decoded() for session in AdminSession.objects.all()])
    assert secret not in str(list(LogEntry.objects.values()))
    assert secret not in text_of(as_bob.get(page_of(ApiKey.objects.get())))
    assert secret not in text_of(as_bob.get(list_of(ApiKey)))


def test_the_history_shows_that_a_key_was_created(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    issue(as_bob, acme)

    entry = LogEntry.objects.get()
    assert entry.is_addition()
    assert (entry.user, entry.object_id) == (bob, str(ApiKey.objects.get().pk))


def test_a_time_in_the_past_is_refused_at_the_field(as_bob: Client, acme: Organisation) -> None:
    response = issue(as_bob, acme, expires_at_0="2020-01-01", expires_at_1="00:00:00")

    assert response.status_code == 200
    assert "This time is in the past" in text_of(response)
    assert not ApiKey.objects.exists()


def test_no_digest_is_shown(as_root: Client, acme_key: IssuedApiKey) -> None:
    assert acme_key.api_key.digest not in text_of(as_root.get(page_of(acme_key.api_key)))


def test_asking_to_revoke_revokes_nothing(as_bob: Client, acme_key: IssuedApiKey) -> None:
    response = as_bob.get(page_of(acme_key.api_key, "revoke"))

    assert response.status_code == 200
    assert "their sessions end. This cannot be undone" in text_of(response)
    acme_key.api_key.refresh_from_db()
    assert acme_key.api_key.revoked_at is None


def test_revoking_ends_the_key_and_its_sessions(
    as_bob: Client, acme_key: IssuedApiKey, acme_token: str
) -> None:
    response = as_bob.post(page_of(acme_key.api_key, "revoke"), CONFIRMED)

    assert response.status_code == 302
    acme_key.api_key.refresh_from_db()
    assert acme_key.api_key.revoked_at is not None
    assert not Session.objects.live().exists()
    assert LogEntry.objects.get().change_message == "Revoked."


def test_a_post_without_the_confirmation_asks(as_bob: Client, acme_key: IssuedApiKey) -> None:
    response = as_bob.post(page_of(acme_key.api_key, "revoke"))

    assert response.status_code == 200
    acme_key.api_key.refresh_from_db()
    assert acme_key.api_key.revoked_at is None


def test_a_revoked_key_has_nothing_to_revoke(as_bob: Client, acme_key: IssuedApiKey) -> None:
    ApiKey.objects.update(revoked_at=timezone.now())

    assert as_bob.get(page_of(acme_key.api_key, "revoke")).status_code == 403
    assert page_of(acme_key.api_key, "revoke") not in text_of(as_bob.get(page_of(acme_key.api_key)))


def test_the_list_revokes_after_asking(as_bob: Client, acme_key: IssuedApiKey) -> None:
    selection = {"action": "revoke_selected", "_selected_action": str(acme_key.api_key.pk)}

    asked = as_bob.post(list_of(ApiKey), selection)
    unchanged = ApiKey.objects.get().revoked_at
    done = as_bob.post(list_of(ApiKey), action_on(acme_key.api_key, "revoke_selected"))

    assert (asked.status_code, unchanged) == (200, None)
    assert done.status_code == 302
    assert ApiKey.objects.get().revoked_at is not None


def test_many_keys_are_revoked_with_one_message_and_an_event_each(
    as_bob: Client, bob: User, acme: Organisation
) -> None:
    keys = [factories.make_api_key(acme, name).api_key for name in ("tills", "shop")]
    ids = [str(api_key.pk) for api_key in keys]

    response = as_bob.post(
        list_of(ApiKey), {"action": "revoke_selected", "_selected_action": ids, **CONFIRMED}
    )

    (message,) = as_bob.get(response["Location"]).context["messages"]
    events = AuthEvent.objects.filter(kind=AuthEventKind.API_KEY_REVOKED)
    assert str(message) == "2 API keys were revoked."
    assert not ApiKey.objects.filter(revoked_at=None).exists()
    assert {(event.credential, event.user, event.organisation) for event in events} == {
        (api_key.key, bob, acme) for api_key in keys
    }


@pytest.mark.parametrize("address", ["//evil.example/", "https://evil.example/", "javascript:1"])
def test_the_redirect_after_revoking_never_leads_to_another_site(
    as_bob: Client, acme_key: IssuedApiKey, address: str
) -> None:
    response = as_bob.post(page_of(acme_key.api_key, "revoke"), {**CONFIRMED, "next": address})

    assert response["Location"] == page_of(acme_key.api_key)


def test_rotating_shows_a_new_secret_and_refuses_the_old_one(
    as_bob: Client, bob: User, acme_key: IssuedApiKey
) -> None:
    asked = as_bob.get(page_of(acme_key.api_key, "rotate"))
    response = rotate(as_bob, acme_key.api_key)

    new = IssuedApiKey(acme_key.api_key, secret_in(response))
    assert "mhs_" not in text_of(asked)
    assert "no-store" in response["Cache-Control"]
    assert factories.open_session(factories.api_key_login(new)).startswith("mhx_")
    refused = factories.post_session(Client(), factories.api_key_login(acme_key))
    assert refused.status_code == 401
    assert LogEntry.objects.get().change_message == "Rotated the secret."
    event = AuthEvent.objects.get(kind=AuthEventKind.API_KEY_ROTATED)
    assert (event.user, event.client_address) == (bob, "127.0.0.1")
    assert new.secret not in str(list(LogEntry.objects.values()))


def test_with_an_overlap_the_old_secret_still_works(as_bob: Client, acme_key: IssuedApiKey) -> None:
    as_bob.post(page_of(acme_key.api_key, "rotate"), {**CONFIRMED, "overlap_seconds": "86400"})

    assert factories.open_session(factories.api_key_login(acme_key)).startswith("mhx_")
    assert "Previous secret valid until" in text_of(as_bob.get(page_of(acme_key.api_key)))


def test_an_overlap_that_is_not_offered_rotates_nothing(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    response = as_bob.post(
        page_of(acme_key.api_key, "rotate"), {**CONFIRMED, "overlap_seconds": "604801"}
    )

    assert response.status_code == 200
    assert "mhs_" not in text_of(response)
    assert ApiKey.objects.get().previous_valid_until is None
    assert factories.open_session(factories.api_key_login(acme_key)).startswith("mhx_")


def test_a_revoked_key_is_not_rotated(as_bob: Client, acme_key: IssuedApiKey) -> None:
    ApiKey.objects.update(revoked_at=timezone.now())

    response = as_bob.post(
        page_of(acme_key.api_key, "rotate"), {**CONFIRMED, "overlap_seconds": "0"}
    )

    assert response.status_code == 403
    assert ApiKey.objects.get().digest == acme_key.api_key.digest


def test_a_key_may_be_bound_to_networks(as_bob: Client, acme: Organisation) -> None:
    issue(as_bob, acme, allowed_networks="192.0.2.0/24\r\n2001:DB8::/48\r\n")

    key = ApiKey.objects.get()
    assert key.allowed_networks == ["192.0.2.0/24", "2001:db8::/48"]
    assert "192.0.2.0/24, 2001:db8::/48" in text_of(as_bob.get(page_of(key)))


def test_an_invalid_network_is_refused_at_the_field(as_bob: Client, acme: Organisation) -> None:
    response = issue(as_bob, acme, allowed_networks="192.0.2.0/24\noffice")

    assert response.status_code == 200
    assert "Enter networks such as" in text_of(response)
    assert "office" in text_of(response)
    assert not ApiKey.objects.exists()


def test_the_list_marks_keys_that_expire_soon_or_are_unused(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    before = text_of(as_bob.get(list_of(ApiKey)))
    now = timezone.now()
    ApiKey.objects.update(created_at=now - timedelta(days=91), expires_at=now + timedelta(days=3))

    after = text_of(as_bob.get(list_of(ApiKey)))

    assert "Expires in" not in before
    assert "Unused" not in before
    assert "Expires in" in after
    assert "Unused for 90 days" in after


def test_the_page_says_where_it_was_used_from(as_bob: Client, acme_key: IssuedApiKey) -> None:
    ApiKey.objects.update(last_used_at=timezone.now(), last_used_from="203.0.113.77")

    assert "203.0.113.77" in text_of(as_bob.get(page_of(acme_key.api_key)))


def test_a_key_is_never_changed_nor_deleted(as_root: Client, acme_key: IssuedApiKey) -> None:
    changed = as_root.post(page_of(acme_key.api_key), {"name": "other"})
    deleted = as_root.post(page_of(acme_key.api_key, "delete"), {"post": "yes"})

    assert (changed.status_code, deleted.status_code) == (403, 403)
    assert ApiKey.objects.get().name == "warehouse"


def test_the_page_shows_the_commands_with_a_placeholder_for_the_secret(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    text = html.unescape(text_of(as_bob.get(page_of(acme_key.api_key))))

    assert f'{{"uid": "{acme_key.api_key.key}", "password": "<secret>"' in text
    assert "/admin/graphql" in text
    assert page_of(acme_key.api_key, "rotate") in text


def test_the_page_of_a_revoked_key_shows_no_commands(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    ApiKey.objects.update(revoked_at=timezone.now())

    assert "curl" not in text_of(as_bob.get(page_of(acme_key.api_key)))


def test_after_a_rotation_with_overlap_both_pages_say_how_long_the_old_secret_works(
    as_bob: Client, acme_key: IssuedApiKey
) -> None:
    page = page_of(acme_key.api_key)

    shown_once = rotate(as_bob, acme_key.api_key, overlap="3600")

    until = f"is valid until {ApiKey.objects.get().previous_valid_until:%Y-%m-%d %H:%M} UTC"
    assert until in text_of(shown_once)
    assert until in text_of(as_bob.get(page))


def test_notices_are_labels(as_bob: Client, acme_key: IssuedApiKey) -> None:
    ApiKey.objects.update(expires_at=timezone.now() + timedelta(days=3))

    text = text_of(as_bob.get(page_of(acme_key.api_key)))

    assert '<div class="mh-labels"><span' in text
    assert "&lt;span" not in text


# --- Keys that were created with a key ------------------------------------------------------------


def test_the_question_names_the_keys_that_end_too(as_bob: Client, acme: Organisation) -> None:
    parent = approved(factories.make_api_key(acme))
    child = child_of(child_of(parent.api_key).api_key).api_key
    address = page_of(parent.api_key, "revoke")

    asked = as_bob.get(address)
    done = as_bob.post(address, CONFIRMED, follow=True)

    assert f"child ({child.key})" in text_of(asked)
    assert "3 API keys were revoked." in text_of(done)
    assert not ApiKey.objects.filter(organisation=acme, revoked_at=None).exists()


def test_the_question_names_the_keys_that_stay(as_bob: Client, acme: Organisation) -> None:
    parent = factories.make_api_key(acme)
    child = child_of(parent.api_key).api_key
    address = page_of(parent.api_key, "revoke")

    asked = as_bob.get(address)
    as_bob.post(address, CONFIRMED)

    assert f"created with it stay valid: child ({child.key})." in text_of(asked)
    assert ApiKey.objects.get(organisation=acme, revoked_at=None) == child


def test_the_question_of_a_key_without_children_warns_of_nothing(
    as_bob: Client, acme: Organisation
) -> None:
    parent = factories.make_api_key(acme)
    child = child_of(parent.api_key).api_key
    revoke_api_key(child)

    asked = as_bob.get(page_of(parent.api_key, "revoke"))
    page = text_of(as_bob.get(page_of(child)))

    assert child.key not in text_of(asked)
    assert str(parent.api_key) in page
