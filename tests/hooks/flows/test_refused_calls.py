"""Why a call was refused, as an administrator reads it, and running it after all."""

import hashlib
import hmac
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.models import Organisation, User
from core.http.origin import NOWHERE
from hooks.flows.call_notes import CallNotes
from hooks.flows.hooks import IssuedHook, delete_hook, update_hook
from hooks.flows.refused_calls import explain, replay_refused_call
from hooks.flows.stored_notes import RefusedCallNote
from hooks.models import RefusedCall, SigningSecret
from scripts_engine.models import Run, Trigger
from scripts_engine.runs.spec import Author
from tests.factories import make_hook, make_refused_call, make_script, set_rules, set_secret_of

SECRET = "It's a Secret to Everybody"
BODY = b'{"zen": "Speak like a human."}'
SOURCE = """return {params.get("sender") or null, params.get("verified") or null,
    params.get("body"), params.get("query"), params.header("X-GitHub-Event") or null}"""


@pytest.fixture
def github(acme: Organisation) -> IssuedHook:
    issued = make_hook(make_script(acme, SOURCE))
    set_rules(issued.hook, sender="github", methods=["POST"])
    set_secret_of(issued.hook, SECRET)
    return issued


def signature(body: bytes = BODY, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def refuse(issued: IssuedHook, signed: str | None = None, **changes: Any) -> RefusedCall:
    """A call of the hook that was refused just now."""
    headers = [("Content-Type", "application/json"), ("X-GitHub-Event", "ping")]
    if signed is not None:
        headers.append(("X-Hub-Signature-256", signed))
    fields = {
        "at": timezone.now(),
        "reason": "SignatureMismatch",
        "detail": "",
        "organisation_id": issued.hook.script.organisation_id,
        "script_id": issued.hook.script_id,
        "hook_id": issued.hook.pk,
        "client_address": "192.0.2.1",
        "method": "POST",
        "headers": tuple(headers),
        "query": "page=1",
        "sender_headers": frozenset({"x-hub-signature-256", "x-github-event"}),
        "body": BODY,
    }
    notes = CallNotes()
    notes.add_refused(RefusedCallNote(**(fields | changes)))
    notes.write()
    return RefusedCall.objects.latest("id")


def codes(refused_call: RefusedCall) -> list[str]:
    return [hint.code for hint in explain(refused_call)]


def text(refused_call: RefusedCall) -> str:
    return " ".join(hint.sentence for hint in explain(refused_call))


# --- Explaining ----------------------------------------------------------------------------------


def test_a_changed_body_is_recognised(github: IssuedHook) -> None:
    refused_call = refuse(github, signature(BODY), body=BODY + b"\n")

    assert codes(refused_call) == ["body-trailing-newline"]


def test_a_retired_secret_is_recognised_for_30_days(github: IssuedHook) -> None:
    set_secret_of(github.hook, "new")
    refused_call = refuse(github, signature())
    assert codes(refused_call) == ["previous-secret"]

    SigningSecret.objects.retired().update(ends_at=timezone.now() - timedelta(days=31))
    assert codes(refused_call) == ["secret-unknown"]


def test_another_hook_s_secret_is_recognised_within_the_organisation(
    acme: Organisation, globex: Organisation, github: IssuedHook
) -> None:
    far = make_hook(make_script(globex), name="far away")
    set_rules(far.hook, sender="github")
    set_secret_of(far.hook, "theirs")
    refused_call = refuse(github, signature(secret="theirs"))
    assert codes(refused_call) == ["secret-unknown"]

    near = make_hook(make_script(acme, name="invoices"), name="billing")
    set_rules(near.hook, sender="github")
    set_secret_of(near.hook, "theirs")
    assert codes(refused_call) == ["other-hook"]
    assert "billing of invoices" in text(refused_call)


def test_no_hint_contains_a_secret_or_a_signature(github: IssuedHook) -> None:
    set_secret_of(github.hook, "the-new-secret")
    refused_call = refuse(github, signature())

    assert text(refused_call)
    assert SECRET not in text(refused_call)
    assert "the-new-secret" not in text(refused_call)
    assert signature() not in text(refused_call)
    assert signature(secret="the-new-secret") not in text(refused_call)


def test_a_call_that_matches_by_now_is_recognised(github: IssuedHook) -> None:
    refused_call = refuse(github, signature(secret="later"))
    assert codes(refused_call) != ["matches-now"]

    set_secret_of(github.hook, "later")
    assert codes(refused_call) == ["matches-now"]


def test_a_hook_without_a_sender_asks_for_no_signature(github: IssuedHook) -> None:
    refused_call = refuse(github, signature())
    set_rules(github.hook, sender="")

    assert codes(refused_call) == ["no-sender"]


def test_without_its_content_the_detail_is_all_there_is(github: IssuedHook) -> None:
    refused_call = refuse(github, signature(), detail="412 s old", body=None)

    assert codes(refused_call) == ["content-not-kept"]
    assert "412 s old" in text(refused_call)


@pytest.mark.parametrize(
    ("reason", "code", "words"),
    [
        ("WrongToken", "wrong-token", "ending in …abcd"),
        ("NetworkNotAllowed", "network-not-allowed", "192.0.2.1"),
        ("MethodNotAllowed", "method-not-allowed", "POST"),
        ("BodyTooLarge", "body-too-large", "larger"),
        ("RateLimited", "rate-limited", "ending in …abcd"),
        ("Busy", "busy", "busy"),
        ("QueueFull", "queue-full", "queue"),
    ],
)
def test_every_other_reason_has_its_sentence(
    github: IssuedHook, reason: str, code: str, words: str
) -> None:
    refused_call = refuse(github, reason=reason, detail="ending in …abcd", body=None)

    assert codes(refused_call) == [code]
    assert words in text(refused_call)


# --- Replay --------------------------------------------------------------------------------------


def replay(refused_call: RefusedCall, by: User | None = None) -> Run:
    return replay_refused_call(refused_call, origin=NOWHERE, by=Author(user=by))


def assert_not_replayed(refused_call: RefusedCall) -> None:
    with pytest.raises(ValidationError):
        replay(refused_call)
    assert not Run.objects.exists()
    assert RefusedCall.objects.count() == 1


def test_a_call_that_matches_by_now_can_be_run(github: IssuedHook, bob: User) -> None:
    refused_call = refuse(github, signature(secret="later"))
    assert_not_replayed(refused_call)

    set_secret_of(github.hook, "later")
    run = replay(refused_call, by=bob)

    assert run == Run.objects.get()
    assert bytes(run.response_body) == (
        b'["github","signed","{\\"zen\\": \\"Speak like a human.\\"}","page=1","ping"]'
    )
    assert (run.hook_id, run.trigger, run.started_by) == (github.hook.pk, Trigger.HOOK, bob)
    assert (run.sender, run.verified, run.client_address) == ("github", "signed", "192.0.2.1")


def test_its_time_is_that_of_the_call(github: IssuedHook) -> None:
    set_rules(github.hook, sender="slack")
    an_hour_ago = timezone.now() - timedelta(hours=1)
    timestamp = str(int(an_hour_ago.timestamp()))
    made = hmac.new(SECRET.encode(), f"v0:{timestamp}:".encode() + BODY, hashlib.sha256)
    headers = (
        ("X-Slack-Signature", f"v0={made.hexdigest()}"),
        ("X-Slack-Request-Timestamp", timestamp),
    )
    names = frozenset(name.lower() for name, _ in headers)
    late = refuse(github, headers=headers, sender_headers=names)
    assert_not_replayed(late)

    in_time = refuse(github, headers=headers, sender_headers=names, at=an_hour_ago)
    assert replay(in_time).sender == "slack"


def test_a_call_of_a_hook_without_rules_can_be_run(acme: Organisation) -> None:
    refused_call = refuse(make_hook(make_script(acme, SOURCE)), reason="Busy")

    assert replay(refused_call).verified is None


def test_a_method_of_no_hook_is_not_run_by_a_hook_without_rules(acme: Organisation) -> None:
    echo = make_hook(make_script(acme))
    call = make_refused_call(echo.hook, reason="MethodNotAllowed")
    RefusedCall.objects.update(method="OPTIONS")
    call.refresh_from_db()

    with pytest.raises(ValidationError, match="does not run for this method"):
        replay_refused_call(call, origin=NOWHERE)

    assert Run.objects.count() == 0


def test_a_preflight_is_explained_by_the_origin(acme: Organisation) -> None:
    call = make_refused_call(make_hook(make_script(acme)).hook, reason="MethodNotAllowed")
    RefusedCall.objects.update(method="OPTIONS")
    call.refresh_from_db()

    [hint] = explain(call)

    assert "Add its origin" in hint.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"body": None},
        {"body": b"x" * (256 * 1024 + 1)},
        {"method": "GET"},
        {"hook_id": None, "reason": "WrongToken"},
    ],
)
def test_a_call_that_is_not_kept_completely_is_not_run(
    github: IssuedHook, changes: dict[str, Any]
) -> None:
    body = changes.get("body") or BODY

    assert_not_replayed(refuse(github, signature(body), **changes))


def test_a_payload_above_the_hook_s_limit_is_not_run(github: IssuedHook) -> None:
    set_rules(github.hook, max_body_bytes=len(BODY) - 1)
    refused_call = refuse(github, signature())
    assert_not_replayed(refused_call)

    set_rules(github.hook, max_body_bytes=len(BODY))
    assert replay(refused_call).verified == "signed"


def test_a_disabled_hook_runs_nothing(github: IssuedHook) -> None:
    refused_call = refuse(github, signature())
    update_hook(github.hook, is_enabled=False)
    assert_not_replayed(refused_call)

    update_hook(github.hook, is_enabled=True)
    assert replay(refused_call).verified == "signed"


def test_a_deleted_hook_runs_nothing(github: IssuedHook) -> None:
    refused_call = refuse(github, signature())
    delete_hook(github.hook)

    assert_not_replayed(refused_call)


def test_content_of_another_row_is_not_run(github: IssuedHook) -> None:
    kept = refuse(github, signature())
    moved = refuse(github, body=None)
    RefusedCall.objects.filter(pk=moved.pk).update(content_ciphertext=kept.content_ciphertext)
    kept.delete()

    assert_not_replayed(RefusedCall.objects.get(pk=moved.pk))
