"""Senders' own libraries sign what they send to a running server."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

import pytest
import stripe
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook
from svix.webhooks import Webhook as SvixWebhook
from twilio.request_validator import RequestValidator

from tests.moonhook_server import MoonhookServer
from tests.sessions import call, graphql, machine_token

# Starts a whole server.
pytestmark = pytest.mark.slow

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
JSON = '{"id": "evt_1", "event_id": "Ev1", "name": "Grüße"}'
FORM = "MessageSid=SM1&Body=caf%C3%A9+noir&Empty="
FORM_FIELDS = {"MessageSid": "SM1", "Body": "café noir", "Empty": ""}
SOURCE = """return {
  sender = params.get("sender"),
  verified = params.get("verified"),
  event = params.get("event_id") or "none",
  body = params.get("body"),
}"""


class Signed(NamedTuple):
    """A call as its sender's library signed it."""

    url: str
    headers: dict[str, str]
    body: str = JSON

    def changed(self) -> Self:
        """The same signature over a body with one other byte."""
        return self._replace(body=self.body.replace("1", "2", 1))


class Answer(NamedTuple):
    status: int
    document: Any
    headers: Any


class Acme:
    """An organisation on the server that sets up its hooks through the Admin GraphQL."""

    def __init__(self, server: MoonhookServer) -> None:
        self._url = f"{server.url}/admin/graphql"
        self._token = machine_token(server)
        made = self.ask(
            "mutation($n: String!, $s: String!) {createScript(name: $n, source: $s) {id}}",
            n=uuid.uuid4().hex,
            s=SOURCE,
        )
        self._script = made["createScript"]["id"]

    def ask(self, query: str, **variables: str) -> Any:
        return graphql(self._url, query, self._token, **variables)

    def hook_of(self, sender: str) -> tuple[str, str]:
        """Id and URL of a new hook that this sender calls."""
        issued = self.ask(
            "mutation($s: ID!) {createHook(script: $s) {hook {id url}}}", s=self._script
        )
        hook = issued["createHook"]["hook"]
        self.ask(
            "mutation($h: ID!, $n: String!, $v: String!) "
            "{setSender(hook: $h, sender: $n) {id} setSigningSecret(hook: $h, value: $v) {id}}",
            h=hook["id"],
            n=sender,
            v=SECRET,
        )
        return hook["id"], hook["url"]

    def runs_of(self, hook: str) -> int:
        asked = self.ask("query($h: ID!) {runs(hook: $h) {totalCount}}", h=hook)
        return int(asked["runs"]["totalCount"])


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acme]:
    with MoonhookServer(tmp_path_factory.mktemp("data"), "--no-demo").running() as server:
        yield Acme(server)


def send(signed: Signed, body: Any = None) -> Answer:
    content = signed.body.encode() if body is None else body
    status, answer, headers = call("POST", signed.url, content, signed.headers)
    return Answer(status, json.loads(answer), headers)


def by_standard_webhooks(url: str) -> Signed:
    now = datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign("msg_1", now, JSON),
    }
    return Signed(url, headers)


def by_svix(url: str) -> Signed:
    now = datetime.now(UTC)
    headers = {
        "svix-id": "msg_1",
        "svix-timestamp": str(int(now.timestamp())),
        "svix-signature": SvixWebhook(SECRET).sign("msg_1", now, JSON),
    }
    return Signed(url, headers)


def by_stripe(url: str) -> Signed:
    header = stripe.WebhookSignature.generate_signature_header(JSON, SECRET)
    return Signed(url, {"Stripe-Signature": header})


def by_slack(url: str) -> Signed:
    now = str(int(time.time()))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=now, body=JSON)
    assert signature is not None
    return Signed(url, {"X-Slack-Request-Timestamp": now, "X-Slack-Signature": signature})


def by_twilio(url: str) -> Signed:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded; charset=utf-8",
        "X-Twilio-Signature": RequestValidator(SECRET).compute_signature(url, FORM_FIELDS),
    }
    return Signed(url, headers, FORM)


def by_twilio_with_json(url: str) -> Signed:
    validator = RequestValidator(SECRET)
    url = f"{url}?bodySHA256={validator.compute_hash(JSON)}"
    headers = {
        "Content-Type": "application/json",
        "X-Twilio-Signature": validator.compute_signature(url, {}),
    }
    return Signed(url, headers)


Sign = Callable[[str], Signed]
WITH_EVENT_ID = [
    (by_standard_webhooks, "standard-webhooks", "msg_1"),
    (by_standard_webhooks, "gitlab", "msg_1"),
    (by_svix, "svix", "msg_1"),
    (by_stripe, "stripe", "evt_1"),
    (by_slack, "slack", "Ev1"),
]
ALL = [
    *WITH_EVENT_ID,
    (by_twilio, "twilio", "none"),
    (by_twilio_with_json, "twilio", "none"),
]


@pytest.mark.parametrize(("sign", "sender", "event"), ALL)
def test_what_a_library_signed_runs(acme: Acme, sign: Sign, sender: str, event: str) -> None:
    hook, url = acme.hook_of(sender)
    signed = sign(url)

    answer = send(signed)

    assert answer.status == 200
    assert answer.document == {
        "sender": sender,
        "verified": "signed",
        "event": event,
        "body": signed.body,
    }
    assert acme.runs_of(hook) == 1


@pytest.mark.parametrize(("sign", "sender", "event"), ALL)
def test_one_changed_byte_runs_nothing(acme: Acme, sign: Sign, sender: str, event: str) -> None:
    hook, url = acme.hook_of(sender)
    signed = sign(url)
    assert send(signed).status == 200

    refused = send(signed.changed())

    assert (refused.status, refused.document["code"]) == (401, "invalid-signature")
    assert refused.headers["WWW-Authenticate"] == 'Signature realm="hooks"'
    assert "Moonhook-Run-Id" not in refused.headers
    assert acme.runs_of(hook) == 1


@pytest.mark.parametrize(("sign", "sender", "event"), ALL)
def test_the_secret_before_the_last_runs_nothing(
    acme: Acme, sign: Sign, sender: str, event: str
) -> None:
    hook, url = acme.hook_of(sender)
    assert send(sign(url)).status == 200
    acme.ask(
        "mutation($h: ID!, $v: String!) "
        "{setSigningSecret(hook: $h, value: $v, overlapSeconds: 0) {id}}",
        h=hook,
        v="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx",
    )

    refused = send(sign(url))

    assert (refused.status, refused.document["code"]) == (401, "invalid-signature")
    assert acme.runs_of(hook) == 1


@pytest.mark.parametrize(("sign", "sender", "event"), WITH_EVENT_ID)
def test_a_repeated_event_gets_the_first_reply(
    acme: Acme, sign: Sign, sender: str, event: str
) -> None:
    hook, url = acme.hook_of(sender)
    first = send(sign(url))

    again = send(sign(url))

    assert (again.status, again.document) == (first.status, first.document)
    assert again.headers["Moonhook-Run-Id"] == first.headers["Moonhook-Run-Id"]
    assert again.headers["Moonhook-Duplicate-Of"] == first.headers["Moonhook-Run-Id"]
    assert "Moonhook-Duplicate-Of" not in first.headers
    assert acme.runs_of(hook) == 1


def test_a_signed_body_may_come_in_chunks(acme: Acme) -> None:
    hook, url = acme.hook_of("svix")
    signed = by_svix(url)
    content = signed.body.encode()

    # The first chunk ends within a character of two bytes.
    middle = content.index(b"\xc3") + 1
    assert send(signed, iter([content[:middle], content[middle:-1]])).status == 401
    answer = send(signed, iter([content[:middle], content[middle:]]))

    assert (answer.status, answer.document["body"]) == (200, signed.body)
    assert acme.runs_of(hook) == 1
