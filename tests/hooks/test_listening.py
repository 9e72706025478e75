"""What a program gets that repeats a hook's calls elsewhere: their headers, and where to begin."""

from typing import Any

import pytest

from accounts.models import AuthEvent, Organisation
from accounts.scopes import Scope
from core.http.redaction import REDACTED
from hooks.flows.hooks import IssuedHook
from hooks.senders import PRESETS, headers_without_credentials
from scripts_engine.models import Run, Script
from scripts_engine.runs.spec import MAX_HEADERS
from scripts_engine.shown_headers import MAX_VALUES_BYTES, shown_headers
from tests.client import Client
from tests.factories import admin_graphql, make_hook, make_organisation, make_script, token_with
from tests.hooks.calls import path_of
from tests.settled import settle

# What a transaction has written is settled once it has ended.
pytestmark = pytest.mark.django_db(transaction=True)
START = "mutation($hook: ID!) { startListening(hook: $hook) }"
FOLLOW = """query($cursor: String) {
    runsSince(cursor: $cursor) { nodes { requestBody requestHeaders { name value } } } }"""
RUN = """mutation($script: ID!, $given: [HeaderInput!]) {
    runScript(script: $script, headers: $given) { requestHeaders { name value } } }"""


@pytest.fixture
def script(acme: Organisation) -> Script:
    return make_script(acme)


@pytest.fixture
def issued(script: Script) -> IssuedHook:
    return make_hook(script)


def shown(run: Run) -> dict[str, str | None]:
    return {header.name.lower(): header.value for header in shown_headers(run)}


def with_headers(*headers: tuple[str, str]) -> Run:
    return Run(request_headers=[list(header) for header in headers])


def call(issued: IssuedHook, body: bytes, **headers: str) -> None:
    answer = Client().post(path_of(issued), body, content_type="text/plain", headers=headers)
    assert answer.status_code == 200


def start(token: str, issued: IssuedHook) -> Any:
    return admin_graphql(START, token, hook=str(issued.hook.pk))


def test_calls_after_the_start_follow_its_cursor(acme_token: str, issued: IssuedHook) -> None:
    call(issued, b"before")
    settle()

    cursor = start(acme_token, issued).data["startListening"]
    call(issued, b"after", **{"X-Shop": "tea", "Authorization": "Basic c2VjcmV0"})
    settle()

    nodes = admin_graphql(FOLLOW, acme_token, cursor=cursor).data["runsSince"]["nodes"]
    assert [node["requestBody"] for node in nodes] == ["after"]
    headers = {header["name"]: header["value"] for header in nodes[0]["requestHeaders"]}
    assert (headers["X-Shop"], headers["Authorization"]) == ("tea", None)


def test_the_start_is_audited(acme_token: str, issued: IssuedHook) -> None:
    assert start(acme_token, issued).errors == []

    event = AuthEvent.objects.get(kind="hook.listening-started")
    assert (event.subject_id, event.organisation) == (str(issued.hook.pk), issued.hook.organisation)
    assert event.actor_kind == "api-key"


def test_listening_without_reading_payloads_is_forbidden(
    acme: Organisation, issued: IssuedHook
) -> None:
    others = set(Scope) - {Scope.ALL, Scope.READ_PAYLOADS}

    answer = start(token_with(acme, *others), issued)

    assert (answer.status, answer.data) == (403, None)
    assert answer.errors[0]["extensions"] == {"code": "FORBIDDEN", "scope": "ReadPayloads"}
    assert not AuthEvent.objects.filter(kind="hook.listening-started").exists()


def test_another_organisations_hook_is_not_found(acme_token: str) -> None:
    foreign = make_hook(make_script(make_organisation("Globex")))

    answer = start(acme_token, foreign)

    assert answer.errors[0]["extensions"]["code"] == "NOT_FOUND"
    assert not AuthEvent.objects.filter(kind="hook.listening-started").exists()


@pytest.mark.parametrize(
    "name",
    ["Content-Type", "User-Agent", "X-Shop", "Ce-Id", "X-Event-Key", "Webhook-Id",
     "X-Hub-Signature-256", "Idempotency-Key", "Stripe-Signature"],
)  # fmt: skip
def test_a_header_that_is_no_credential_is_shown(name: str) -> None:
    assert shown(with_headers((name, "tea"))) == {name.lower(): "tea"}


@pytest.mark.parametrize(
    "name",
    ["Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "X-Auth-Token",
     "X-Gitlab-Token", "X-Telegram-Bot-Api-Secret-Token", "X-Hook-Secret", "X-Amz-Security-Token",
     "X-Session-Id", "X-CSRFToken", "X-Password", "Shop-Topic",
     "Api-Key", "Forwarded", "Host", "Referer"],
)  # fmt: skip
def test_any_other_header_has_a_name_alone(name: str) -> None:
    assert shown(with_headers((name, "tea"))) == {name.lower(): None}


@pytest.mark.parametrize(
    "value",
    [REDACTED, "mhc_" + "a" * 46, "https://m.example/hook/1/2/mhc_" + "a" * 46, "a\u2400b", "\x00"],
    ids=["hidden-in-the-record", "call-token", "url-with-call-token", "nul", "control-character"],
)
def test_a_value_that_is_hidden_or_cannot_be_sent_is_not_shown(value: str) -> None:
    assert shown(with_headers(("X-Shop", value))) == {"x-shop": None}


def test_no_sender_names_its_own_credential() -> None:
    tokens = {
        headers.signature.lower()
        for preset in PRESETS.values()
        if preset.scheme.value == "token"
        for headers in preset.headers
    }

    assert tokens >= {"x-gitlab-token"}
    assert not tokens & headers_without_credentials()
    assert "authorization" not in headers_without_credentials()


def test_headers_are_bounded() -> None:
    many = with_headers(*((f"X-{number}", "a" * 8_000) for number in range(150)))

    headers = shown_headers(many)

    assert len(headers) == MAX_HEADERS
    assert sum(len(header.value or "") for header in headers) <= MAX_VALUES_BYTES
    assert [header.value is None for header in headers] == [False] * 8 + [True] * 92


def test_shown_headers_run_again(acme_token: str, script: Script) -> None:
    given = [{"name": "X-Shop", "value": "tea"}, {"name": "Stripe-Signature", "value": "t=1"}]

    first = admin_graphql(RUN, acme_token, script=str(script.pk), given=given)
    headers = first.data["runScript"]["requestHeaders"]
    again = admin_graphql(RUN, acme_token, script=str(script.pk), given=headers)

    assert headers == given
    assert again.data["runScript"]["requestHeaders"] == given


def test_headers_of_a_call_need_the_scope_of_payloads(acme: Organisation, script: Script) -> None:
    token = token_with(acme, Scope.READ_SCRIPTS)

    answer = admin_graphql("{ runs { nodes { requestHeaders { name value } } } }", token)

    assert (answer.status, answer.data) == (403, None)
    assert {error["extensions"]["scope"] for error in answer.errors} == {"ReadPayloads"}


def test_starting_again_and_again_is_recorded_once(acme: Organisation, issued: IssuedHook) -> None:
    token = token_with(acme, Scope.READ_PAYLOADS)
    starts = " ".join(f"a{number}: startListening(hook: $hook)" for number in range(20))

    answer = admin_graphql(
        "mutation($hook: ID!) { " + starts + " }", token, hook=str(issued.hook.pk)
    )

    assert answer.errors == []
    assert AuthEvent.objects.filter(kind="hook.listening-started").count() == 1
