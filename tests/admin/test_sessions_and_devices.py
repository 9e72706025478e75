from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.admin.devices import REVOKE_ALL
from accounts.flows.api_keys import IssuedApiKey
from accounts.flows.check_pin import IssuedDeviceToken
from accounts.models import AuthEvent, AuthEventKind, DeviceToken, Organisation, User
from sessions_api.admin import END_ALL
from sessions_api.models import Session
from tests import factories
from tests.admin.pages import CONFIRMED, action_on, list_of, page_of, text_of

pytestmark = pytest.mark.postgresql


def test_the_list_names_the_owner_of_a_session(as_bob: Client, acme_token: str) -> None:
    text = text_of(as_bob.get(list_of(Session)))

    assert "warehouse (mhk_" in text
    assert "API key" in text
    assert "127.0.0.1" in text


def test_asking_to_end_a_session_ends_none(as_bob: Client, acme_token: str) -> None:
    response = as_bob.get(page_of(Session.objects.get(), "end"))

    assert response.status_code == 200
    assert Session.objects.count() == 1


def test_bob_ends_a_session_and_the_key_stays(
    as_bob: Client, acme_key: IssuedApiKey, acme_token: str
) -> None:
    response = as_bob.post(page_of(Session.objects.get(), "end"), CONFIRMED)

    assert response.status_code == 302
    assert not Session.objects.exists()
    refused = Client().get("/session", headers=factories.bearer(acme_token))
    assert refused.status_code == 401
    assert factories.open_session(factories.api_key_login(acme_key))


def test_the_list_ends_sessions(as_bob: Client, acme_token: str) -> None:
    response = as_bob.post(list_of(Session), action_on(Session.objects.get(), "end_selected"))

    assert response.status_code == 302
    assert not Session.objects.exists()
    assert LogEntry.objects.get().is_deletion()


def test_an_ended_session_is_not_listed(
    as_bob: Client, acme_key: IssuedApiKey, acme_token: str
) -> None:
    session = Session.objects.get()
    as_bob.post(page_of(acme_key.api_key, "revoke"), CONFIRMED)

    assert page_of(session) not in text_of(as_bob.get(list_of(Session)))
    assert as_bob.get(page_of(session)).status_code == 404


def test_no_digest_of_a_session_is_shown(as_root: Client, acme_token: str) -> None:
    session = Session.objects.get()

    assert session.digest not in text_of(as_root.get(page_of(session)))


def test_bob_revokes_a_device_from_the_page_of_its_user(as_bob: Client, alice: User) -> None:
    issued = factories.make_device_token(alice)
    factories.open_session(factories.device_login(issued))

    response = as_bob.post(
        page_of(issued.device_token, "revoke"), {**CONFIRMED, "next": page_of(alice)}
    )

    assert response["Location"] == page_of(alice)
    assert DeviceToken.objects.get().revoked_at is not None
    assert not Session.objects.live().exists()


def test_the_list_revokes_devices(as_bob: Client, alice: User) -> None:
    device = factories.make_device_token(alice).device_token

    response = as_bob.post(list_of(DeviceToken), action_on(device, "revoke_selected"))

    assert response.status_code == 302
    assert DeviceToken.objects.get().revoked_at is not None
    assert LogEntry.objects.get().change_message == "Revoked."


def test_bob_neither_sees_nor_ends_the_sessions_of_a_shared_user(
    as_bob: Client, dora: User
) -> None:
    factories.open_session(factories.device_login(factories.make_device_token(dora)))
    session, device = Session.objects.get(), DeviceToken.objects.get()

    ended = as_bob.post(page_of(session, "end"), CONFIRMED)
    revoked = as_bob.post(page_of(device, "revoke"), CONFIRMED)

    assert (ended.status_code, revoked.status_code) in {(403, 403), (404, 404)}
    assert "dora" not in text_of(as_bob.get(list_of(Session)))
    assert Session.objects.live().count() == 1


def all_of(user: User, what: str) -> str:
    return reverse(f"admin:{what}", args=[user.pk])


def test_bob_revokes_all_devices_of_alice(as_bob: Client, alice: User) -> None:
    factories.make_device_token(alice)
    factories.make_device_token(alice, label="laptop")

    asked = as_bob.get(all_of(alice, REVOKE_ALL))
    assert DeviceToken.objects.filter(revoked_at=None).count() == 2
    response = as_bob.post(all_of(alice, REVOKE_ALL), CONFIRMED)

    assert "laptop of alice@example.com" in text_of(asked)
    assert response["Location"] == page_of(alice)
    assert not DeviceToken.objects.filter(revoked_at=None).exists()


def test_bob_ends_all_sessions_of_alice_and_her_devices_stay(as_bob: Client, alice: User) -> None:
    issued = factories.make_device_token(alice)
    factories.open_session(factories.device_login(issued))
    factories.open_session(factories.device_login(issued))

    asked = as_bob.get(all_of(alice, END_ALL))
    assert Session.objects.count() == 2
    response = as_bob.post(all_of(alice, END_ALL), CONFIRMED)

    assert asked.status_code == 200
    assert response["Location"] == page_of(alice)
    assert not Session.objects.exists()
    assert factories.is_accepted(issued)


@pytest.mark.parametrize("what", [END_ALL, REVOKE_ALL])
def test_bob_ends_nothing_of_a_shared_user_at_once(as_bob: Client, dora: User, what: str) -> None:
    factories.open_session(factories.device_login(factories.make_device_token(dora)))

    asked = as_bob.get(all_of(dora, what))
    response = as_bob.post(all_of(dora, what), CONFIRMED)

    assert (asked.status_code, response.status_code) == (404, 404)
    assert "dora" not in text_of(asked) + text_of(response)
    assert Session.objects.live().count() == 1


def test_the_audit_names_the_administrator_who_ended_it(
    as_bob: Client, bob: User, alice: User
) -> None:
    issued = factories.make_device_token(alice)
    factories.open_session(factories.device_login(issued))

    as_bob.post(page_of(Session.objects.get(), "end"), CONFIRMED)
    as_bob.post(page_of(issued.device_token, "revoke"), CONFIRMED)

    ends = (AuthEventKind.SESSION_ENDED, AuthEventKind.DEVICE_REVOKED)
    events = AuthEvent.objects.filter(kind__in=ends)
    assert {(event.user, event.email) for event in events} == {(bob, alice.email)}
    assert events.count() == 2


def devices_of(user: User, number: int) -> list[IssuedDeviceToken]:
    return [factories.make_device_token(user) for _ in range(number)]


def open_sessions(devices: list[IssuedDeviceToken]) -> None:
    for issued in devices:
        factories.open_session(factories.device_login(issued))


def said(client: Client, response: Any) -> list[str]:
    """The messages on the page after the redirect."""
    page = client.get(response["Location"])
    return [str(message) for message in page.context["messages"]]


def ends_on_record() -> list[tuple[str, str, str | None, str, str]]:
    """Kind, credential, actor, owner's e-mail and organisation of each event."""
    ends = (AuthEventKind.SESSION_ENDED, AuthEventKind.DEVICE_REVOKED)
    events = AuthEvent.objects.filter(kind__in=ends).order_by("credential")
    return [
        (event.kind, event.credential, event.user_id, event.email, event.organisation_id)
        for event in events
    ]


def test_many_devices_are_revoked_with_one_message_and_an_event_each(
    as_bob: Client, bob: User, alice: User, acme: Organisation
) -> None:
    ids = sorted(str(issued.device_token.pk) for issued in devices_of(alice, 3))

    response = as_bob.post(all_of(alice, REVOKE_ALL), CONFIRMED)

    assert said(as_bob, response) == ["3 devices were revoked."]
    assert ends_on_record() == [
        ("device.revoked", device_id, bob.pk, alice.email, acme.pk) for device_id in ids
    ]
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["Revoked."] * 3


def test_many_sessions_end_with_one_message_and_an_event_each(
    as_bob: Client, bob: User, alice: User, acme: Organisation
) -> None:
    factories.open_session(factories.device_login(factories.make_device_token(alice)))
    factories.open_session(factories.device_login(factories.make_device_token(alice)))
    ids = sorted(str(session.pk) for session in Session.objects.all())

    response = as_bob.post(all_of(alice, END_ALL), CONFIRMED)

    assert said(as_bob, response) == ["2 sessions were ended."]
    assert ends_on_record() == [
        ("session.ended", session_id, bob.pk, alice.email, acme.pk) for session_id in ids
    ]
    assert [entry.is_deletion() for entry in LogEntry.objects.all()] == [True, True]


def test_sessions_of_keys_and_people_end_together(
    as_root: Client,
    root: User,
    alice: User,
    dora: User,
    acme: Organisation,
    globex: Organisation,
    acme_token: str,
) -> None:
    factories.open_session(factories.device_login(factories.make_device_token(alice)))
    factories.open_session(factories.device_login(factories.make_device_token(dora)))
    by_key = Session.objects.get(device_token=None)

    response = as_root.post(
        list_of(Session), action_on(by_key, "end_selected", select_across="1", index="0")
    )

    assert said(as_root, response) == ["3 sessions were ended."]
    assert {(by, email, of) for _, _, by, email, of in ends_on_record()} == {
        (root.pk, "", acme.pk),
        (root.pk, alice.email, acme.pk),
        (root.pk, dora.email, globex.pk),
    }


def test_a_revoked_device_is_not_revoked_again(as_bob: Client, alice: User) -> None:
    device = factories.make_device_token(alice).device_token
    as_bob.post(list_of(DeviceToken), action_on(device, "revoke_selected"))

    response = as_bob.post(list_of(DeviceToken), action_on(device, "revoke_selected"))

    assert said(as_bob, response)[-1] == "0 devices were revoked."
    assert AuthEvent.objects.filter(kind=AuthEventKind.DEVICE_REVOKED).count() == 1


def queries_of(client: Client, address: str, form: dict[str, Any]) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.post(address, form).status_code == 302
    return len(captured)


@pytest.mark.parametrize("what", [END_ALL, REVOKE_ALL])
def test_ending_all_takes_as_many_queries_for_many_as_for_few(
    as_bob: Client, alice: User, what: str
) -> None:
    open_sessions(devices_of(alice, 2))
    few = queries_of(as_bob, all_of(alice, what), CONFIRMED)
    open_sessions(devices_of(alice, 9))

    many = queries_of(as_bob, all_of(alice, what), CONFIRMED)

    assert many <= few


@pytest.mark.parametrize(
    ("model", "action"), [(Session, "end_selected"), (DeviceToken, "revoke_selected")]
)
def test_ending_the_selected_takes_as_many_queries_for_many_as_for_few(
    as_bob: Client, alice: User, model: type[Any], action: str
) -> None:
    open_sessions(devices_of(alice, 2))
    few = queries_of(as_bob, list_of(model), selected(model, action))
    open_sessions(devices_of(alice, 9))

    many = queries_of(as_bob, list_of(model), selected(model, action))

    assert many <= few


def selected(model: type[Any], action: str) -> dict[str, Any]:
    """The body of the list action on all rows."""
    ids = [str(row.pk) for row in model.objects.all()]
    return {"action": action, "_selected_action": ids, **CONFIRMED}


def test_sessions_and_devices_cannot_be_added(as_root: Client) -> None:
    assert as_root.get(list_of(Session, "add")).status_code == 403
    assert as_root.get(list_of(DeviceToken, "add")).status_code == 403
