"""Test events of a hook: through the checks of any call, and no call of the sender."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from accounts.models import AuthEvent, Organisation, User
from accounts.scopes import Scope
from hooks.admin.hooks.day import day_of, newest_calls
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.models import CredentialUse, RefusedCall
from hooks.senders import PRESETS
from scripts_engine.callers import name_triggers
from scripts_engine.models import Run
from scripts_engine.recent_runs import Activity, activity_of
from tests.admin.pages import CONFIRMED, logged_in, page_of, text_of
from tests.client import Client
from tests.factories import (
    admin_graphql,
    make_hook,
    make_organisation,
    make_script,
    set_rules,
    set_secret_of,
    token_with,
)
from tests.hooks.calls import path_of
from tests.working_queue import work_all
from tests.written import nothing_written

SEEN = """return {
  trigger = params.get("trigger"), sender = params.get("sender"), verified = params.get("verified"),
  event_id = params.get("event_id"), body = params.get("body")
}"""
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
SEND = "mutation($hook: ID!) { sendTestEvent(hook: $hook) { id status trigger } }"


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme, SEEN))


@pytest.fixture
def signed(issued: IssuedHook) -> IssuedHook:
    set_rules(issued.hook, sender="stripe")
    set_secret_of(issued.hook, "geheim")
    return issued


def send(token: str, issued: IssuedHook) -> Any:
    return admin_graphql(SEND, token, hook=str(issued.hook.pk))


def test_the_script_runs_for_a_verified_event(acme_token: str, signed: IssuedHook) -> None:
    answer = send(acme_token, signed)

    run = Run.objects.get()
    seen = json.loads(bytes(run.response_body))
    assert answer.data["sendTestEvent"] == {
        "id": str(run.pk),
        "status": "Succeeded",
        "trigger": "test",
    }
    assert (seen["trigger"], seen["sender"], seen["verified"]) == ("test", "stripe", "signed")
    assert seen["event_id"] == json.loads(seen["body"])["id"]
    assert (run.hook_id, run.client_address) == (signed.hook.pk, None)


def test_a_hook_without_a_sender_gets_an_event_too(acme_token: str, issued: IssuedHook) -> None:
    assert send(acme_token, issued).errors == []

    assert json.loads(json.loads(bytes(Run.objects.get().response_body))["body"])["type"] == "test"


def test_each_event_runs(acme_token: str, signed: IssuedHook) -> None:
    assert [send(acme_token, signed).errors for _ in "123"] == [[], [], []]

    assert Run.objects.values("event_id").distinct().count() == 3


def test_nothing_of_it_counts_as_a_call(acme_token: str, signed: IssuedHook) -> None:
    send(acme_token, signed)
    call_notes.write()

    [newest] = newest_calls(signed.hook)
    assert newest.state == "waiting"
    assert [name for _, name in name_triggers(list(Run.objects.all()))] == ["Test event"]
    assert day_of(signed.hook).accepted == 0
    assert activity_of([signed.hook], "hook_id", LONG_AGO)[signed.hook.pk] == Activity(None, 0, 0)
    assert CredentialUse.objects.count() == 0
    assert RefusedCall.objects.count() == 0


def test_an_accepted_event_is_queued(acme_token: str, signed: IssuedHook) -> None:
    set_rules(signed.hook, reply_mode="accepted")

    answer = send(acme_token, signed)
    [run] = work_all()

    assert answer.data["sendTestEvent"]["status"] == "Queued"
    assert (run.trigger, Run.objects.get().status) == ("test", "succeeded")


def test_the_rules_of_the_hook_count(acme_token: str, signed: IssuedHook) -> None:
    set_rules(signed.hook, methods=["GET"])
    with nothing_written():
        by_method = send(acme_token, signed)
    set_rules(signed.hook, methods=None, max_body_bytes=10)
    with nothing_written():
        by_size = send(acme_token, signed)

    assert [each.code for each in (by_method, by_size)] == ["BAD_USER_INPUT"] * 2
    assert "MethodNotAllowed" in by_method.errors[0]["message"]
    assert "BodyTooLarge" in by_size.errors[0]["message"]
    assert Run.objects.count() == 0


def test_without_a_secret_it_says_so(acme_token: str, issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="github")
    with nothing_written():
        answer = send(acme_token, issued)

    assert (answer.code, answer.errors[0]["extensions"]["field"]) == ("BAD_USER_INPUT", "hook")
    assert answer.errors[0]["message"] == "Set the signing secret first."


@pytest.mark.parametrize("name", ["discord", "sendgrid"])
def test_a_sender_with_key_pairs_needs_no_secret(
    acme_token: str, issued: IssuedHook, name: str
) -> None:
    set_rules(issued.hook, sender=name)

    assert send(acme_token, issued).errors == []
    assert Run.objects.get().verified == PRESETS[name].strength


def test_a_disabled_hook_takes_none(acme_token: str, signed: IssuedHook) -> None:
    set_rules(signed.hook, is_enabled=False)
    with nothing_written():
        answer = send(acme_token, signed)

    assert answer.code == "BAD_USER_INPUT"


@pytest.mark.parametrize("scope", [Scope.WRITE_HOOKS, Scope.RUN_SCRIPTS])
def test_it_needs_both_scopes(acme: Organisation, signed: IssuedHook, scope: Scope) -> None:
    token = token_with(acme, scope, Scope.READ_SCRIPTS)
    answer = send(token, signed)

    assert answer.code == "FORBIDDEN"
    assert Run.objects.count() == 0


def test_a_hook_of_another_organisation_is_not_found(acme_token: str) -> None:
    foreign = make_hook(make_script(make_organisation("Initech")))
    with nothing_written():
        answer = send(acme_token, foreign)

    assert answer.code == "NOT_FOUND"


def test_it_is_audited_and_its_secret_is_not_recorded(acme_token: str, issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="gitlab-token")
    set_secret_of(issued.hook, "sh0p-geheim")
    send(acme_token, issued)

    run = Run.objects.get()
    assert AuthEvent.objects.filter(kind="test-event.sent").count() == 1
    assert "sh0p-geheim" not in f"{run.request_headers}{bytes(run.request_body)!r}"


def test_an_administrator_sends_one_and_sees_its_run(
    signed: IssuedHook, bob: User, settings: Any
) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    bob.is_staff = True
    bob.save()
    client = logged_in(bob)
    address = page_of(signed.hook, "send_test_event")

    question = client.get(address)
    assert Run.objects.count() == 0
    sent = client.post(address, CONFIRMED)

    assert address in text_of(client.get(page_of(signed.hook)))
    assert "Its effects are real." in text_of(question)
    assert sent["Location"] == page_of(Run.objects.get())


# --- Walls ----------------------------------------------------------------------------------------

SEEN_BY = (Scope.READ_SCRIPTS, Scope.READ_PAYLOADS, Scope.WRITE_HOOKS, Scope.RUN_SCRIPTS)
TURN = """mutation($hook: ID!, $sender: String!) {
  setSender(hook: $hook, sender: $sender) { id }
}"""
SENT = """mutation($hook: ID!) { sendTestEvent(hook: $hook) {
  requestBody requestQuery responseBody requestHeaders { value } logs { text }
} }"""


@pytest.mark.parametrize(
    "sender", ["microsoft-graph", "gitlab-token", "github", "stripe", "slack", "standard-webhooks"]
)
def test_a_signing_secret_is_never_read_by_way_of_another_sender(
    acme: Organisation, sender: str
) -> None:
    secret = "whsec_" + "Q" * 32 if sender == "standard-webhooks" else "geheim0123456789abcdef"
    echo = 'log.info(params.get("body")) return params.get("body") .. (params.get("query") or "")'
    hook = make_hook(make_script(acme, echo)).hook
    set_rules(hook, sender=sender)
    set_secret_of(hook, secret)
    token = token_with(acme, *SEEN_BY)

    for other in (sender, "microsoft-graph"):
        assert admin_graphql(TURN, token, hook=str(hook.pk), sender=other).errors == []
        answer = admin_graphql(SENT, token, hook=str(hook.pk))
        assert answer.errors == []
        assert secret not in str(answer.data)


def test_a_test_event_signs_nothing_with_the_hooks_secret(acme: Organisation) -> None:
    issued = make_hook(make_script(acme, 'return "ok"'))
    set_rules(issued.hook, sender="github")
    set_secret_of(issued.hook, "geheim")
    token = token_with(acme, *SEEN_BY)
    turn = """mutation($hook: ID!, $template: String!) {
      setSender(hook: $hook, sender: "hmac", hmac: {header: "X-Sig", template: $template}) { id }
    }"""
    back = 'mutation($hook: ID!) { setSender(hook: $hook, sender: "github") { id } }'
    hook = str(issued.hook.pk)

    assert not admin_graphql(turn, token, hook=hook, template='["forged",{body}]').errors
    sent = admin_graphql(
        "mutation($hook: ID!) { sendTestEvent(hook: $hook) "
        "{ requestBody requestHeaders { name value } } }",
        token,
        hook=hook,
    ).data["sendTestEvent"]
    made = {each["name"]: each["value"] for each in sent["requestHeaders"]}["X-Sig"]
    assert not admin_graphql(back, token, hook=hook).errors
    forged = f'["forged",{sent["requestBody"]}]'.encode()
    headers = {"X-Hub-Signature-256": f"sha256={made}"}
    answer = Client().post(path_of(issued), forged, "application/json", headers=headers)

    assert answer.status_code == 401
    assert Run.objects.count() == 1


def test_the_query_of_a_signed_url_is_not_recorded(acme_token: str, issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="twilio", signed_url="https://proxy.example/in?key=sekrit123")
    set_secret_of(issued.hook, "geheim")

    answer = admin_graphql(SENT, acme_token, hook=str(issued.hook.pk))

    assert answer.errors == []
    assert "sekrit123" not in str(answer.data)


def test_a_test_event_is_not_replayed(acme: Organisation, signed: IssuedHook) -> None:
    send(token_with(acme, *SEEN_BY), signed)
    [run] = Run.objects.all()
    operator = token_with(acme, Scope.READ_SCRIPTS, Scope.OPERATE_QUEUE, name="operator")
    replay = "mutation($ids: [ID!]) { replayRuns(ids: $ids) }"

    with nothing_written():
        answer = admin_graphql(replay, operator, ids=[str(run.pk)])

    assert answer.code == "BAD_USER_INPUT"
    assert "is of a test event" in answer.errors[0]["message"]
    assert newest_calls(signed.hook)[0].state == "waiting"


def test_the_page_of_a_test_event_says_so_and_offers_no_replay(
    acme_token: str, signed: IssuedHook, bob: User, settings: Any
) -> None:
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    bob.is_staff = True
    bob.save()
    as_bob = logged_in(bob)
    send(acme_token, signed)
    [run] = Run.objects.all()

    page = text_of(as_bob.get(page_of(run)))
    with nothing_written():
        refused = as_bob.post(page_of(run, "again"), follow=True)

    assert "Test event of" in page
    assert page_of(run, "again") not in page
    assert "A test event is not replayed: send another one." in text_of(refused)
    assert Run.objects.count() == 1
