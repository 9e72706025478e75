"""Senders, signing secrets, limits and refused calls at /admin/graphql, and their tenants."""

import hashlib
import hmac
import json
import uuid
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import AuthEvent
from hooks.call_sender import open_verify_token
from hooks.flows.senders import expect_handshake, set_sender, set_signing_secret
from hooks.graphql import refused_calls
from hooks.models import CredentialUse, Hook, RefusedCall, SigningSecret
from hooks.senders import PRESETS
from scripts_engine.models import Run, Script
from tests.factories import admin_graphql, field_of, make_hook, make_refused_call, make_script
from tests.hooks.graphql.sender_mutations import LIMITS, SET_SENDER

SET_SECRET = """mutation($hook: ID!, $value: String!, $seconds: Int = 86400) {
    setSigningSecret(hook: $hook, value: $value, overlapSeconds: $seconds) {
        id createdAt endsAt lastUsedAt lastUsedFrom useCount } }"""
DELETE_SECRET = "mutation($id: ID!) { deleteSigningSecret(id: $id) }"
EXPECT = "mutation($hook: ID!) { expectHandshake(hook: $hook) { handshakeExpectedUntil } }"
REPLAY = """mutation($id: ID!) {
    replayRefusedCall(id: $id) { status sender verified eventId requestBody } }"""
REFUSED = """query($hook: ID, $script: ID, $reason: RefusalReason, $since: DateTime) {
    refusedCalls(hook: $hook, script: $script, reason: $reason, since: $since) {
        totalCount nodes { id at reason detail hints explanations clientAddress method
            headerNames hook { id } script { id } } } }"""


def refused_call(hook: Hook, body: bytes, signature: str) -> RefusedCall:
    return make_refused_call(hook, body, (("X-Hub-Signature-256", signature),))


def signed(secret: bytes, body: bytes) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


# --- Senders --------------------------------------------------------------------------------------


def test_the_senders_are_listed_with_what_they_need(acme_token: str) -> None:
    answer = admin_graphql(
        """{ senders { name title strength takesSecret handshake handshakeMethod
            handshakeBringsSecret toleranceSeconds hasEventId eventIdPlace
            takesEventIdPointers refusesBodyHash acceptedStatus retries patienceSeconds steps
            documentation } }""",
        acme_token,
    )

    senders = {sender["name"]: sender for sender in answer.data["senders"]}
    assert list(senders) == list(PRESETS)
    assert (senders["github"]["strength"], senders["github"]["hasEventId"]) == ("Signed", False)
    assert senders["mailgun"]["strength"] == "BodyUnsigned"
    assert senders["gitlab-token"]["strength"] == "SharedSecret"
    assert senders["cloudevents"]["handshakeMethod"] == "OPTIONS"
    assert senders["asana"]["handshakeBringsSecret"] is True
    assert senders["slack"]["acceptedStatus"] == 200


def test_a_sender_is_set_and_removed(hook: Hook, acme_token: str) -> None:
    on = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender="stripe")
    off = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender=None)

    assert on.data["setSender"] == {
        "sender": "stripe",
        "methods": ["POST"],
        "idempotency": "EventId",
        "toleranceSeconds": 300,
        "verifyToken": None,
        "signingSecrets": [],
        "hmac": None,
    }
    assert (off.data["setSender"]["sender"], Hook.objects.get().sender) == (None, "")


def test_the_verify_token_is_shown(hook: Hook, acme_token: str) -> None:
    answer = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender="meta")

    ciphertext = Hook.objects.get().verify_token_ciphertext
    assert ciphertext is not None
    assert answer.data["setSender"]["verifyToken"] == open_verify_token(hook.pk, bytes(ciphertext))


@pytest.mark.parametrize(
    ("sender", "message"),
    [
        ("Github", "There is no such sender. Did you mean github?"),
        ("nobody-knows", "There is no such sender. The query `senders` lists them."),
    ],
)
def test_unknown_sender_is_answered_with_a_similar_one(
    hook: Hook, acme_token: str, sender: str, message: str
) -> None:
    answer = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender=sender)

    assert answer.errors[0]["message"] == message
    assert Hook.objects.get().sender == ""


def test_the_sender_hmac_has_its_options(hook: Hook, acme_token: str) -> None:
    options = {
        "header": "X-Signature",
        "algorithm": "Sha512",
        "encoding": "Base64",
        "prefix": "v1=",
        "template": "{timestamp}.{id}.{body}",
        "timestampHeader": "X-Time",
        "idHeader": "X-Id",
        "secretEncoding": "Hex",
    }
    answer = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender="hmac", hmac=options)

    assert answer.data["setSender"]["hmac"] == options
    assert answer.data["setSender"]["idempotency"] == "EventId"


@pytest.mark.parametrize(
    ("sender", "options", "field"),
    [
        ("nobody-knows", None, "sender"),
        ("", None, "sender"),
        ("hmac", None, "hmac"),
        ("github", {"header": "X-Signature"}, "hmac"),
        ("hmac", {"header": "no header"}, "header"),
        ("hmac", {"header": "X-Signature", "template": "nothing"}, "template"),
        ("hmac", {"header": "X-Signature", "template": "{body}{body}"}, "template"),
        ("hmac", {"header": "X-S", "template": "{timestamp}{body}"}, "timestampHeader"),
        ("hmac", {"header": "X-S", "template": "{id}{body}"}, "template"),
        ("hmac", {"header": "X-S", "template": "{id}.{body}"}, "idHeader"),
    ],
)
def test_a_wrong_sender_is_named_by_its_field(
    hook: Hook, acme_token: str, sender: str, options: Any, field: str
) -> None:
    answer = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender=sender, hmac=options)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert "nobody-knows" not in answer.errors[0]["message"]
    assert Hook.objects.get().sender == ""


# --- Signing secrets ------------------------------------------------------------------------------


def test_a_signing_secret_is_set_and_listed_without_its_value(hook: Hook, acme_token: str) -> None:
    set_sender(hook, sender="github")
    first = admin_graphql(SET_SECRET, acme_token, hook=str(hook.pk), value="hush-1")
    second = admin_graphql(SET_SECRET, acme_token, hook=str(hook.pk), value="hush-2", seconds=60)

    assert first.data["setSigningSecret"]["endsAt"] is None
    assert first.data["setSigningSecret"]["useCount"] == 0
    query = "{ hooks { nodes { signingSecrets { id endsAt } } } }"
    [node] = admin_graphql(query, acme_token).data["hooks"]["nodes"]
    newest, previous = node["signingSecrets"]
    assert (newest["id"], newest["endsAt"]) == (second.data["setSigningSecret"]["id"], None)
    assert previous["endsAt"] is not None
    assert "hush" not in json.dumps([first.data, second.data])
    assert "hush" not in str(list(AuthEvent.objects.values()))


def test_the_use_of_secrets_and_call_tokens_is_shown(hook: Hook, acme_token: str) -> None:
    secret = set_signing_secret(set_sender(hook, sender="github"), "hush")
    hook.refresh_from_db()
    now = timezone.now()
    CredentialUse.objects.create(
        hook=hook,
        credential=str(secret.pk),
        last_used_at=now,
        last_used_from="192.0.2.1",
        count=3,
    )
    CredentialUse.objects.create(
        hook=hook, credential=hook.digest, last_used_at=now, last_used_from=None, count=2**40
    )
    query = """{ hooks { nodes { signingSecrets { lastUsedFrom useCount }
        callTokenLastUsedFrom callTokenUseCount previousCallTokenLastUsedAt
        previousCallTokenUseCount } } }"""

    assert admin_graphql(query, acme_token).data["hooks"]["nodes"] == [
        {
            "signingSecrets": [{"lastUsedFrom": "192.0.2.1", "useCount": 3}],
            "callTokenLastUsedFrom": None,
            "callTokenUseCount": 2**31 - 1,
            "previousCallTokenLastUsedAt": None,
            "previousCallTokenUseCount": 0,
        }
    ]


@pytest.mark.parametrize(
    ("sender", "value", "seconds", "field"),
    [
        (None, "hush", 60, "hook"),
        ("cloudevents", "hush", 60, "hook"),
        ("github", " ", 60, "value"),
        ("discord", "hush", 60, "value"),
        ("github", "hush", -1, "overlapSeconds"),
        ("github", "hush", 604_801, "overlapSeconds"),
    ],
)
def test_a_wrong_signing_secret_is_refused(
    hook: Hook, acme_token: str, sender: str | None, value: str, seconds: int, field: str
) -> None:
    set_sender(hook, sender=sender)
    answer = admin_graphql(SET_SECRET, acme_token, hook=str(hook.pk), value=value, seconds=seconds)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert "hush" not in json.dumps(answer.errors)
    assert not SigningSecret.objects.exists()


def test_a_signing_secret_is_deleted(hook: Hook, acme_token: str) -> None:
    secret = set_signing_secret(set_sender(hook, sender="github"), "hush")
    done = admin_graphql(DELETE_SECRET, acme_token, id=str(secret.pk))
    again = admin_graphql(DELETE_SECRET, acme_token, id=str(secret.pk))

    assert (done.data, again.code) == ({"deleteSigningSecret": True}, "NOT_FOUND")
    assert not SigningSecret.objects.live().exists()


def test_a_handshake_is_expected(hook: Hook, acme_token: str) -> None:
    set_sender(hook, sender="asana")
    answer = admin_graphql(EXPECT, acme_token, hook=str(hook.pk))

    assert answer.data["expectHandshake"]["handshakeExpectedUntil"] is not None


def test_a_handshake_that_brings_no_secret_is_not_expected(hook: Hook, acme_token: str) -> None:
    set_sender(hook, sender="github")
    answer = admin_graphql(EXPECT, acme_token, hook=str(hook.pk))

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", "hook")
    assert Hook.objects.get().handshake_expected_until is None


# --- Refused calls --------------------------------------------------------------------------------


def test_a_refused_call_says_why(hook: Hook, acme_token: str) -> None:
    set_signing_secret(set_sender(hook, sender="github"), "hush")
    call = refused_call(hook, b"{}", signed(b"hush", b"{}\n"))
    [node] = admin_graphql(REFUSED, acme_token, hook=str(hook.pk)).data["refusedCalls"]["nodes"]

    assert (node["id"], node["reason"]) == (str(call.pk), "SignatureMismatch")
    assert node["hints"] == ["body-trailing-newline"]
    assert len(node["explanations"]) == 1
    assert (node["clientAddress"], node["headerNames"]) == ("192.0.2.1", ["X-Hub-Signature-256"])
    assert node["hook"] == {"id": str(hook.pk)}


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"reason": "SignatureMismatch"}, 1),
        ({"reason": "WrongToken"}, 0),
        ({"since": "2020-01-01T00:00:00Z"}, 1),
        ({"since": "2100-01-01T00:00:00Z"}, 0),
    ],
)
def test_refused_calls_are_filtered(
    hook: Hook, acme_token: str, filters: dict[str, str], count: int
) -> None:
    refused_call(hook, b"{}", "sha256=00")
    other = make_hook(make_script(hook.organisation)).hook
    refused_call(other, b"{}", "sha256=00")

    own = {"hook": str(hook.pk), "script": str(hook.script_id)}
    answer = admin_graphql(REFUSED, acme_token, **own, **filters)
    assert answer.data["refusedCalls"]["totalCount"] == count


def test_the_diagnoses_of_a_document_are_limited(
    hook: Hook, acme_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused_call(hook, b"{}", "sha256=00")
    refused_call(hook, b"{}", "sha256=00")
    monkeypatch.setattr(refused_calls, "MAX_DIAGNOSES", 1)
    few = admin_graphql("{ refusedCalls(first: 1) { nodes { hints explanations } } }", acme_token)
    many = admin_graphql("{ refusedCalls { nodes { hints } } }", acme_token)

    assert len(few.data["refusedCalls"]["nodes"]) == 1
    assert many.code == "LIMIT_EXCEEDED"


def test_a_refused_call_that_matches_now_is_replayed(hook: Hook, acme_token: str) -> None:
    set_sender(hook, sender="github")
    call = refused_call(hook, b'{"a":1}', signed(b"hush", b'{"a":1}'))
    early = admin_graphql(REPLAY, acme_token, id=str(call.pk))
    set_signing_secret(hook, "hush")
    late = admin_graphql(REPLAY, acme_token, id=str(call.pk))

    assert (early.code, field_of(early)) == ("BAD_USER_INPUT", "id")
    assert late.data["replayRefusedCall"] == {
        "status": "Succeeded",
        "sender": "github",
        "verified": "signed",
        "eventId": None,
        "requestBody": '{"a":1}',
    }
    assert Run.objects.count() == 1


# --- Tenants --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "variables"),
    [
        (SET_SENDER, {"hook": "hook", "sender": "stripe"}),
        (SET_SECRET, {"hook": "hook", "value": "stolen"}),
        (DELETE_SECRET, {"id": "secret"}),
        (EXPECT, {"hook": "asana"}),
        (REPLAY, {"id": "call"}),
        (REFUSED, {"hook": "hook"}),
        (REFUSED, {"script": "script"}),
        ("mutation($id: ID!) { updateHook(id: $id, burst: 1) { burst } }", {"id": "hook"}),
        (
            "mutation($id: ID!) { updateScript(id: $id, maxConcurrentRuns: 1) { name } }",
            {"id": "script"},
        ),
        (SET_SENDER, {"hook": "nothing", "sender": "stripe"}),
        (DELETE_SECRET, {"id": "not an id"}),
    ],
)
def test_another_organisations_key_finds_nothing(
    hook: Hook,
    acme_token: str,
    globex_token: str,
    document: str,
    variables: dict[str, str],
) -> None:
    secret = set_signing_secret(set_sender(hook, sender="github"), "hush")
    asana = set_sender(make_hook(hook.script, "asana").hook, sender="asana")
    call = refused_call(hook, b"{}", signed(b"hush", b"{}"))
    ids = {
        "hook": str(hook.pk),
        "asana": str(asana.pk),
        "secret": str(secret.pk),
        "call": str(call.pk),
        "script": str(hook.script_id),
        "nothing": str(uuid.uuid4()),
    }
    before = state()
    given = {name: ids.get(value, value) for name, value in variables.items()}
    answer = admin_graphql(document, globex_token, **given)

    assert answer.code == "NOT_FOUND"
    assert state() == before


def state() -> list[Any]:
    models = (Hook, Script, SigningSecret, RefusedCall, Run)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_refused_calls_of_other_organisations_are_not_listed(
    hook: Hook, globex_token: str, acme_token: str
) -> None:
    refused_call(hook, b"{}", "sha256=00")
    query = "{ refusedCalls { totalCount nodes { id } } }"

    assert admin_graphql(query, acme_token).data["refusedCalls"]["totalCount"] == 1
    assert admin_graphql(query, globex_token).data == {
        "refusedCalls": {"totalCount": 0, "nodes": []}
    }


def test_a_page_of_hooks_costs_as_many_queries_for_one_as_for_many(
    hook: Hook, acme_token: str, django_assert_max_num_queries: Any
) -> None:
    set_signing_secret(set_sender(hook, sender="github"), "hush")
    expect_handshake(set_sender(make_hook(hook.script).hook, sender="asana"))
    [make_hook(hook.script) for _ in range(5)]
    query = f"""{{ hooks {{ nodes {{ {LIMITS} callTokenUseCount
        signingSecrets {{ useCount lastUsedAt }} }} }} }}"""

    with django_assert_max_num_queries(5):
        assert admin_graphql(query, acme_token).errors == []
