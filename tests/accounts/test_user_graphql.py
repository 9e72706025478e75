"""/user/graphql: PIN login and the user's devices."""

import uuid
from typing import Any

import pytest
from django.test import Client

from accounts.messages.channels import SendVia
from accounts.models import DeviceToken, PinChallenge, User
from jobs.models import Message
from tests.factories import (
    GraphQLAnswer,
    deliver_pin,
    device_login,
    is_accepted,
    make_device_token,
    make_pin,
    open_session,
    post_session,
    user_graphql,
)

SEND = "mutation($email: String, $via: SendVia) { sendPinCode(email: $email, sendVia: $via) }"
CHECK = """mutation($email: String, $pin: String, $device: String, $host: String) {
    checkPinCode(email: $email, pin: $pin, device: $device, host: $host) { token tokenId result }
}"""
FAILURE = {"token": None, "tokenId": None, "result": False}


def check(mail: str, code: str, **changes: Any) -> GraphQLAnswer:
    variables = {"email": mail, "pin": code, "device": str(uuid.uuid4()), "host": "phone"}
    return user_graphql(CHECK, None, **(variables | changes))


@pytest.fixture
def alice_token(alice: User) -> str:
    return open_session(device_login(make_device_token(alice)))


@pytest.mark.parametrize("email", ["alice@example.com", "nobody@example.com"])
@pytest.mark.parametrize("via", ["Both", "Sms", "Email"])
def test_asking_for_a_code_answers_true_for_known_and_unknown(
    alice: User, email: str, via: str
) -> None:
    answer = user_graphql(SEND, None, email=email, via=via)

    assert answer == GraphQLAnswer(200, {"sendPinCode": True}, [])
    asked_for = {"Both": ["email", "sms"], "Sms": ["sms"], "Email": ["email"]}[via]
    queued = [message.arguments["args"][:3] for message in Message.objects.order_by("pk")]
    assert queued == [[email, channel, via.lower()] for channel in asked_for]


def test_known_and_unknown_cost_the_same_queries(
    alice: User, django_assert_num_queries: Any
) -> None:
    make_pin(alice)
    deliver_pin("nobody@example.com", SendVia.EMAIL)
    wrong = "000000"

    for email in (alice.email, "nobody@example.com"):
        with django_assert_num_queries(6):
            user_graphql(SEND, None, email=email, via="Email")
        with django_assert_num_queries(8):
            check(email, wrong)


def test_non_null_variables_fit_too(alice: User) -> None:
    query = "mutation($e: String!, $v: SendVia!) { sendPinCode(email: $e, sendVia: $v) }"

    assert user_graphql(query, None, e=alice.email, v="Email").data == {"sendPinCode": True}


@pytest.mark.parametrize(
    ("variables", "field"),
    [
        ({"via": "Email"}, "email"),
        ({"email": None, "via": "Email"}, "email"),
        ({"email": "alice@example.com"}, "sendVia"),
        ({"email": "not an address", "via": "Email"}, "email"),
        ({"email": "", "via": "Email"}, "email"),
    ],
)
def test_a_bad_request_for_a_code_names_the_field(
    db: None, variables: dict[str, Any], field: str
) -> None:
    answer = user_graphql(SEND, None, **variables)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == field
    assert answer.data == {"sendPinCode": None}
    assert Message.objects.count() == 0


def test_the_right_pin_gives_a_credential_that_opens_a_session(client: Client, alice: User) -> None:
    device = str(uuid.uuid4())
    answer = check(alice.email, make_pin(alice), device=device, host="Alice's phone")

    outcome = answer.data["checkPinCode"]
    assert outcome["result"] is True
    login = {"credential": "Token", "uid": outcome["tokenId"], "password": outcome["token"]}
    session = post_session(client, login | {"email": alice.email})
    assert session.status_code == 201
    assert session.json()["device"] == {"id": device, "label": "Alice's phone"}


def test_a_wrong_pin_is_no_error_but_a_false_result(alice: User) -> None:
    pin = make_pin(alice)
    answer = check(alice.email, "000000" if pin != "000000" else "000001")

    assert answer == GraphQLAnswer(200, {"checkPinCode": FAILURE}, [])
    assert DeviceToken.objects.count() == 0


@pytest.mark.parametrize("pin", ["", "12345", "1234567", "abcdef", "١٢٣٤٥٦", "12345\0"])
def test_an_invalid_pin_gives_the_same_false_result(alice: User, pin: str) -> None:
    make_pin(alice)

    assert check(alice.email, pin).data == {"checkPinCode": FAILURE}
    assert PinChallenge.objects.get().tries == 0


@pytest.mark.parametrize("email", ["nobody@example.com", "not an address"])
def test_an_unknown_address_is_a_false_result_too(db: None, email: str) -> None:
    assert check(email, "123456") == GraphQLAnswer(200, {"checkPinCode": FAILURE}, [])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"email": None}, "email"),
        ({"pin": None}, "pin"),
        ({"device": None}, "device"),
        ({"device": "phone"}, "device"),
        ({"host": "x" * 65}, "host"),
        ({"host": "a\nb"}, "host"),
    ],
)
def test_a_bad_check_names_the_field_and_uses_no_try(
    alice: User, changes: dict[str, Any], field: str
) -> None:
    answer = check(alice.email, make_pin(alice), **changes)

    assert answer.code == "BAD_USER_INPUT"
    assert answer.errors[0]["extensions"]["field"] == field
    assert PinChallenge.objects.get().tries == 0
    assert DeviceToken.objects.count() == 0


def test_the_host_may_be_left_out(alice: User) -> None:
    query = """mutation($email: String!, $pin: String!, $device: String!) {
        checkPinCode(email: $email, pin: $pin, device: $device) { result } }"""
    variables = {"email": alice.email, "pin": make_pin(alice), "device": str(uuid.uuid4())}

    assert user_graphql(query, None, **variables).data["checkPinCode"]["result"] is True


def test_many_guesses_in_one_document_are_refused_before_the_first(alice: User) -> None:
    make_pin(alice)
    guesses = " ".join(
        f'g{i}: checkPinCode(email: "{alice.email}", pin: "{i:06d}", device: "{uuid.uuid4()}") '
        "{ result }"
        for i in range(20)
    )
    answer = user_graphql(f"mutation {{ {guesses} }}")

    assert answer.code == "LIMIT_EXCEEDED"
    assert PinChallenge.objects.get().tries == 0


def test_a_pin_sent_as_a_number_is_not_echoed(alice: User) -> None:
    answer = check(alice.email, 987654)  # type: ignore[arg-type]

    assert "987654" not in str(answer)
    assert answer.errors


def test_me_is_the_user_of_the_session(alice: User, alice_token: str) -> None:
    answer = user_graphql("{ me { id email name phone isActive } }", alice_token)

    assert answer.data["me"] == {
        "id": str(alice.pk),
        "email": "alice@example.com",
        "name": "Alice",
        "phone": "+491701234567",
        "isActive": True,
    }


def test_the_own_devices_are_listed(alice: User, charlie: User, alice_token: str) -> None:
    make_device_token(charlie)
    other = make_device_token(alice, label="tablet")
    answer = user_graphql("{ devices { tokenId device label isCurrent } }", alice_token)

    devices = {device["label"]: device for device in answer.data["devices"]}
    assert set(devices) == {"phone", "tablet"}
    assert devices["phone"]["isCurrent"] is True
    assert devices["tablet"] == {
        "tokenId": str(other.device_token.pk),
        "device": str(other.device_token.device),
        "label": "tablet",
        "isCurrent": False,
    }


def test_a_revoked_device_is_gone(alice: User, alice_token: str) -> None:
    other = make_device_token(alice, label="tablet")
    revoke = "mutation($id: ID!) { revokeDevice(tokenId: $id) }"
    answer = user_graphql(revoke, alice_token, id=str(other.device_token.pk))

    assert answer.data == {"revokeDevice": True}
    assert not is_accepted(other)
    labels = user_graphql("{ devices { label } }", alice_token).data["devices"]
    assert labels == [{"label": "phone"}]


def test_the_own_sessions_are_listed_and_ended(alice: User, alice_token: str) -> None:
    other = open_session(device_login(make_device_token(alice)))
    sessions = user_graphql("{ sessions { id credential isCurrent } }", alice_token).data[
        "sessions"
    ]
    [ended] = [session for session in sessions if not session["isCurrent"]]
    answer = user_graphql("mutation($id: ID!) { endSession(id: $id) }", alice_token, id=ended["id"])

    assert len(sessions) == 2
    assert answer.data == {"endSession": True}
    assert user_graphql("{ me { id } }", other).code == "UNAUTHENTICATED"
    assert user_graphql("{ me { id } }", alice_token).errors == []


@pytest.mark.parametrize(
    "mutation",
    [
        "mutation($id: ID!) { revokeDevice(tokenId: $id) }",
        "mutation($id: ID!) { endSession(id: $id) }",
    ],
)
def test_objects_of_other_users_are_not_found(
    charlie: User, alice_token: str, mutation: str
) -> None:
    issued = make_device_token(charlie)
    token = open_session(device_login(issued))
    [session] = user_graphql("{ sessions { id } }", token).data["sessions"]
    answers = [
        user_graphql(mutation, alice_token, id=theirs)
        for theirs in (str(issued.device_token.pk), session["id"], str(uuid.uuid4()), "x")
    ]

    assert [answer.code for answer in answers] == ["NOT_FOUND"] * 4
    assert user_graphql("{ me { id } }", token).errors == []


@pytest.mark.parametrize("query", ["{ me { id } }", "{ devices { label } }", "{ sessions { id } }"])
def test_without_a_session_the_door_is_closed(db: None, query: str) -> None:
    response = Client().post("/user/graphql", {"query": query}, content_type="application/json")

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == 'Bearer realm="moonhook"'
    [error] = response.json()["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize("query", ["{ me { id } }", "{ devices { label } }", "{ sessions { id } }"])
def test_an_api_key_session_is_forbidden(acme_token: str, query: str) -> None:
    answer = user_graphql(query, acme_token)

    assert (answer.status, answer.code) == (403, "FORBIDDEN")


def test_a_login_ignores_a_session_that_ended(alice: User) -> None:
    answer = user_graphql(SEND, "mhx_gone", email=alice.email, via="Email")

    assert answer.data == {"sendPinCode": True}


def test_another_sites_page_cannot_use_the_cookie(alice: User) -> None:
    client = Client()
    post_session(client, device_login(make_device_token(alice)))
    refused = client.post(
        "/user/graphql",
        {"query": "{ me { id } }"},
        content_type="application/json",
        headers={"Sec-Fetch-Site": "cross-site"},
    )

    assert refused.status_code == 403
    assert refused.json()["errors"][0]["extensions"]["code"] == "FORBIDDEN"
    own = client.post("/user/graphql", {"query": "{ me { id } }"}, content_type="application/json")
    assert own.status_code == 200
