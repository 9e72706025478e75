"""The limits of a hook over GraphQL."""

from typing import Any

import pytest

from accounts.models import AuthEvent, Organisation
from hooks.flows.senders import set_sender
from hooks.models import Hook
from tests.factories import GraphQLAnswer, admin_graphql, field_of, make_script
from tests.hooks.graphql.sender_mutations import LIMITS, SET_SENDER

CREATE_ACCEPTING = """mutation($id: ID!, $status: Int, $attempts: Int) {
    createHook(script: $id, replyMode: Accepted, acceptedStatus: $status, maxAttempts: $attempts) {
        hook { replyMode acceptedStatus maxAttempts } } }"""
DEFAULTS = {
    "sender": None,
    "signedUrl": None,
    "toleranceSeconds": None,
    "allowedNetworks": [],
    "methods": ["GET", "POST"],
    "maxBodyBytes": 1_048_576,
    "idempotency": "None",
    "idempotencyWindowSeconds": 86_400,
    "eventIdPointers": [],
    "callsPerMinute": None,
    "burst": None,
    "maxConcurrentRuns": None,
    "replyMode": "Script",
    "acceptedStatus": 202,
    "maxAttempts": 5,
}


def update(hook: Hook, token: str, arguments: str) -> GraphQLAnswer:
    return admin_graphql(
        f'mutation {{ updateHook(id: "{hook.pk}", {arguments}) {{ {LIMITS} }} }}', token
    )


# --- Limits ---------------------------------------------------------------------------------------


def test_a_hook_has_its_defaults(hook: Hook, acme_token: str) -> None:
    answer = admin_graphql(f"{{ hooks {{ nodes {{ {LIMITS} }} }} }}", acme_token)

    assert answer.data["hooks"]["nodes"] == [DEFAULTS]


@pytest.mark.parametrize(
    ("field", "literal", "shown"),
    [
        ("signedUrl", '"https://shop.example/in"', "https://shop.example/in"),
        ("toleranceSeconds", "60", 60),
        ("allowedNetworks", '["192.0.2.0/24"]', ["192.0.2.0/24"]),
        ("methods", "[GET]", ["GET"]),
        ("maxBodyBytes", "1024", 1024),
        ("idempotencyWindowSeconds", "60", 60),
        ("callsPerMinute", "55", 55),
        ("burst", "7", 7),
        ("maxConcurrentRuns", "2", 2),
        ("replyMode", "Accepted", "Accepted"),
        ("acceptedStatus", "200", 200),
        ("acceptedStatus", "299", 299),
        ("maxAttempts", "1", 1),
        ("maxAttempts", "20", 20),
    ],
)
def test_a_limit_is_set_kept_and_reset(
    hook: Hook, acme_token: str, field: str, literal: str, shown: Any
) -> None:
    literal = literal.replace("[GET]", '["GET"]')
    is_set = update(hook, acme_token, f"{field}: {literal}")
    kept = update(hook, acme_token, 'name: "renamed"')
    reset = update(hook, acme_token, f"{field}: null")

    assert is_set.data["updateHook"][field] == shown
    assert kept.data["updateHook"][field] == shown
    assert reset.data["updateHook"] == DEFAULTS


def test_bodies_of_post_are_compared(hook: Hook, acme_token: str) -> None:
    answer = update(hook, acme_token, 'idempotency: BodyHash, methods: ["POST"]')

    assert answer.data["updateHook"] == DEFAULTS | {"idempotency": "BodyHash", "methods": ["POST"]}


def test_a_sender_whose_get_is_compared_is_not_removed(hook: Hook, acme_token: str) -> None:
    admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender="github")
    update(hook, acme_token, 'idempotency: BodyHash, methods: ["GET"]')

    answer = admin_graphql(SET_SENDER, acme_token, hook=str(hook.pk), sender=None)

    assert (answer.errors[0]["extensions"]["code"], field_of(answer)) == (
        "BAD_USER_INPUT",
        "idempotency",
    )
    assert Hook.objects.get().sender == "github"


def test_the_burst_is_a_tenth_of_the_calls(hook: Hook, acme_token: str) -> None:
    assert update(hook, acme_token, "callsPerMinute: 55").data["updateHook"]["burst"] == 5


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ('signedUrl: "shop.example"', "signedUrl"),
        ("toleranceSeconds: 9", "toleranceSeconds"),
        ('allowedNetworks: ["192.0.2.1/24"]', "allowedNetworks"),
        ("methods: []", "methods"),
        ('methods: ["HEAD"]', "methods"),
        ("maxBodyBytes: 1048577", "maxBodyBytes"),
        ("idempotency: EventId", "idempotency"),
        ("idempotency: BodyHash", "idempotency"),
        ('idempotency: BodyHash, methods: ["GET"]', "idempotency"),
        ("idempotencyWindowSeconds: 604801", "idempotencyWindowSeconds"),
        ('eventIdPointers: ["/id"]', "eventIdPointers"),
        ("callsPerMinute: 0", "callsPerMinute"),
        ("burst: -1", "burst"),
        ("maxConcurrentRuns: 0", "maxConcurrentRuns"),
        ("acceptedStatus: 199", "acceptedStatus"),
        ("acceptedStatus: 300", "acceptedStatus"),
        ("acceptedStatus: 0", "acceptedStatus"),
        ("maxAttempts: 0", "maxAttempts"),
        ("maxAttempts: 21", "maxAttempts"),
    ],
)
def test_a_wrong_limit_is_refused_by_its_field(
    hook: Hook, acme_token: str, arguments: str, field: str
) -> None:
    answer = update(hook, acme_token, f'name: "renamed", {arguments}')

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert Hook.objects.get().name == "shop"


def test_the_accepted_status_is_what_the_sender_expects(hook: Hook, acme_token: str) -> None:
    set_sender(hook, sender="discord")
    by_sender = update(hook, acme_token, "replyMode: Accepted")
    own = update(hook, acme_token, "acceptedStatus: 201")

    assert by_sender.data["updateHook"]["acceptedStatus"] == 204
    assert own.data["updateHook"]["acceptedStatus"] == 201


def test_the_default_attempts_are_the_settings(hook: Hook, acme_token: str, settings: Any) -> None:
    settings.QUEUE_MAX_ATTEMPTS = 7

    assert update(hook, acme_token, 'name: "x"').data["updateHook"]["maxAttempts"] == 7


def test_a_hook_is_created_with_its_queue(acme: Organisation, acme_token: str) -> None:
    script = make_script(acme)
    answer = admin_graphql(CREATE_ACCEPTING, acme_token, id=str(script.pk), status=200, attempts=3)

    issued = answer.data["createHook"]["hook"]
    assert issued == {"replyMode": "Accepted", "acceptedStatus": 200, "maxAttempts": 3}
    stored = Hook.objects.get()
    assert (stored.reply_mode, stored.accepted_status) == ("accepted", 200)
    assert stored.max_attempts == 3


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"status": 300}, "acceptedStatus"), ({"attempts": 21}, "maxAttempts")],
)
def test_a_hook_with_a_wrong_queue_is_not_created(
    acme: Organisation, acme_token: str, wrong: dict[str, int], field: str
) -> None:
    given = {"id": str(make_script(acme).pk), "status": 202, "attempts": 3, **wrong}
    events = AuthEvent.objects.count()
    answer = admin_graphql(CREATE_ACCEPTING, acme_token, **given)

    assert (answer.code, field_of(answer)) == ("BAD_USER_INPUT", field)
    assert (Hook.objects.count(), AuthEvent.objects.count()) == (0, events)


def test_a_script_limits_its_runs(acme: Organisation, acme_token: str) -> None:
    script = make_script(acme)
    change = f'mutation {{ updateScript(id: "{script.pk}", %s) {{ maxConcurrentRuns }} }}'
    on = admin_graphql(change % "maxConcurrentRuns: 3", acme_token)
    kept = admin_graphql(change % "enabled: true", acme_token)
    wrong = admin_graphql(change % "maxConcurrentRuns: 0", acme_token)
    off = admin_graphql(change % "maxConcurrentRuns: null", acme_token)

    assert on.data == kept.data == {"updateScript": {"maxConcurrentRuns": 3}}
    assert (wrong.code, field_of(wrong)) == ("BAD_USER_INPUT", "maxConcurrentRuns")
    assert off.data == {"updateScript": {"maxConcurrentRuns": None}}
