"""The shipped calls of every sender, made to hooks, each at its own time."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Organisation
from hooks.call_sender import seal_verify_token
from hooks.flows.call_notes import call_notes
from hooks.flows.hooks import IssuedHook
from hooks.models import AnsweredHandshake, Hook, RefusedCall
from hooks.senders import PRESETS, Rules, Strength, Vector, preset_with, shipped_vectors
from scripts_engine.models import Run
from tests.client import Client
from tests.factories import make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import PROTECTION, path_of
from tests.hooks.github import assert_refused, path_with_wrong_token

VECTORS = shipped_vectors()
ACCEPTED = [each for each in VECTORS if each.expected["ok"] and "handshake" not in each.expected]
GREETED = [each for each in VECTORS if "handshake" in each.expected]
# Wrong methods have a test of their own below.
REFUSED = [
    each for each in VECTORS if each.expected.get("reason") not in (None, "MethodNotAllowed")
]
SOURCE = 'return Reply{body = params.get("event_id") or "none"}'


def hook_of(vector: Vector, organisation: Organisation) -> IssuedHook:
    """A hook as an administrator would set it up for the vector's sender."""
    issued = make_hook(make_script(organisation, SOURCE))
    rules = vector.rules
    token = rules.verify_token
    soon = timezone.now() + timedelta(minutes=10)
    set_rules(
        issued.hook,
        sender=rules.preset,
        hmac=hmac_of(rules),
        methods=["POST"],
        tolerance_seconds=rules.tolerance_seconds,
        event_id_pointers=list(rules.event_id_pointers),
        verify_token_ciphertext=token and seal_verify_token(issued.hook.pk, token),
        handshake_expected_until=soon if rules.is_handshake_expected else None,
        calls_per_minute=rules.allowed_rate,
        signed_url=vector.call.url if signs_url(rules) else "",
    )
    for secret in reversed(vector.secrets):
        set_secret_of(issued.hook, secret, overlap_seconds=60)
    return issued


def signs_url(rules: Rules) -> bool:
    preset = preset_with(rules.preset, rules.hmac)
    return preset is not None and "{url}" in preset.template


def hmac_of(rules: Rules) -> dict[str, str | None] | None:
    options = rules.hmac
    if options is None:
        return None
    return {
        "header": options.header,
        "algorithm": options.algorithm,
        "encoding": options.encoding,
        "prefix": options.prefix,
        "template": options.template,
        "timestampHeader": options.timestamp_header,
        "idHeader": options.id_header,
        "secretEncoding": options.secret_encoding,
    }


def send(vector: Vector, issued: IssuedHook, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the call at the vector's time, with repeated headers joined as servers do."""
    monkeypatch.setattr("hooks.acceptance.time", SimpleNamespace(time=lambda: vector.now))
    headers: dict[str, str] = {}
    for name, value in vector.call.headers:
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    content_type = next((v for n, v in headers.items() if n.lower() == "content-type"), "")
    environ = {
        "HTTP_" + name.upper().replace("-", "_"): value
        for name, value in headers.items()
        if name.lower() not in ("content-type", "content-length")
    }
    return Client().generic(
        vector.call.method,
        path_of(issued),
        vector.call.body,
        content_type,
        QUERY_STRING=vector.call.query,
        **environ,
    )


@pytest.mark.parametrize("vector", ACCEPTED, ids=lambda vector: vector.id)
def test_a_call_of_the_sender_runs_the_script(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch, vector: Vector
) -> None:
    response = send(vector, hook_of(vector, acme), monkeypatch)

    assert response.status_code == 200, response.content
    event_id = vector.expected.get("event_id")
    assert response.content.decode() == (event_id or "none")
    run = Run.objects.get()
    assert (run.sender, run.event_id or None) == (vector.rules.preset, event_id)
    assert bytes(run.request_body) == recorded(vector)


def recorded(vector: Vector) -> bytes:
    """The body, without the secret that some senders put into it."""
    shared = PRESETS[vector.rules.preset].strength is Strength.SHARED_SECRET
    hidden = vector.secrets[0].encode() if shared and vector.secrets else b"no secret"
    return vector.call.body.replace(hidden, b"[redacted]")


@pytest.mark.parametrize("vector", REFUSED, ids=lambda vector: vector.id)
def test_a_call_that_proves_nothing_runs_nothing(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch, vector: Vector
) -> None:
    issued = hook_of(vector, acme)

    assert_refused(send(vector, issued, monkeypatch))
    call_notes.write()
    assert RefusedCall.objects.get().reason == vector.expected["reason"]


@pytest.mark.parametrize("vector", GREETED, ids=lambda vector: vector.id)
def test_a_handshake_is_answered_without_a_run(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch, vector: Vector
) -> None:
    issued = hook_of(vector, acme)
    response = send(vector, issued, monkeypatch)

    expected = vector.expected
    assert response.status_code == expected["status"]
    assert response.content.decode() == expected.get("body", "")
    assert response.headers.items() >= PROTECTION.items()
    assert response.headers.items() >= dict(expected.get("response_headers", [])).items()
    assert response.headers.get("Content-Type") == expected.get(
        "content_type", response.headers.get("Content-Type")
    )
    assert "Moonhook-Run-Id" not in response
    assert Run.objects.count() == 0
    call_notes.write()
    handshake = AnsweredHandshake.objects.get(hook=issued.hook)
    assert (handshake.sender, handshake.response_status) == (
        vector.rules.preset,
        expected["status"],
    )
    assert not RefusedCall.objects.exists()


def by_id(name: str) -> Vector:
    return next(vector for vector in VECTORS if vector.id == name)


def test_the_secret_of_a_handshake_is_stored_once(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = by_id("asana-handshake")
    issued = hook_of(vector, acme)

    assert send(vector, issued, monkeypatch).status_code == 204
    first = Hook.objects.get(pk=issued.hook.pk)
    assert first.signing_secret is not None
    assert_refused(send(vector, issued, monkeypatch))
    again = Hook.objects.get(pk=issued.hook.pk)
    assert again.signing_secret == first.signing_secret
    assert again.signing_secrets.count() == 1


def test_a_handshake_that_is_not_expected_stores_nothing(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = by_id("asana-handshake")
    issued = hook_of(vector, acme)
    set_rules(issued.hook, handshake_expected_until=timezone.now())

    assert_refused(send(vector, issued, monkeypatch))
    assert Hook.objects.get(pk=issued.hook.pk).signing_secret is None


def test_a_secret_that_another_handshake_brought_meanwhile_stays(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = by_id("asana-handshake")
    issued = hook_of(vector, acme)
    monkeypatch.setattr("hooks.acceptance.store_greeted_secret", lambda *args, **kwargs: False)

    assert_refused(send(vector, issued, monkeypatch))
    call_notes.write()
    assert RefusedCall.objects.get().reason == "HandshakeRefused"


def test_a_get_that_is_not_a_handshake_is_a_wrong_method(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = by_id("meta-handshake")
    issued = hook_of(vector, acme)
    set_secret_of(issued.hook, "app secret")

    assert send(vector, issued, monkeypatch).status_code == 200
    other = Client().get(path_of(issued) + "?page=1")
    assert (other.status_code, other["Allow"]) == (405, "HEAD, POST")
    assert Run.objects.count() == 0


def test_handshakes_by_the_secure_address_are_posts(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = hook_of(by_id("meta-handshake"), acme)
    path = path_of(issued).replace("/hook/", "/hook/secure/").rpartition("/")[0]

    response = Client().get(path + "?hub.mode=subscribe")
    assert (response.status_code, response["Allow"]) == (405, "POST")


def ask_permission(path: str, origin: str | None = "eventemitter.example.com") -> Any:
    headers = {} if origin is None else {"WebHook-Request-Origin": origin}
    return Client().options(path, headers=headers)


def test_options_is_for_senders_of_cloudevents(acme: Organisation) -> None:
    issued = make_hook(make_script(acme))
    set_rules(issued.hook, sender="cloudevents", methods=["POST"])
    wrong = path_with_wrong_token(issued)

    assert ask_permission(path_of(issued)).status_code == 200
    refused = [ask_permission(path_of(issued), origin=None), ask_permission(wrong)]
    set_rules(issued.hook, allowed_networks=["192.0.2.0/24"])
    refused.append(ask_permission(path_of(issued)))
    set_rules(issued.hook, allowed_networks=None, sender="github")
    set_secret_of(issued.hook, "geheim")
    refused.append(ask_permission(path_of(issued)))
    set_rules(issued.hook, sender="", methods=None)
    refused.append(ask_permission(path_of(issued)))

    assert [response.status_code for response in refused] == [405] * 5
    assert [response.json()["code"] for response in refused] == ["method-not-allowed"] * 5
    assert [refused[n]["Allow"] for n in (0, 1, 2, 4)] == ["GET, HEAD, POST"] * 4
    assert Run.objects.count() == 0


def test_a_wrong_signature_of_a_handshake_is_refused(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = by_id("slack-handshake")
    issued = hook_of(vector, acme)
    set_secret_of(issued.hook, "another")

    assert_refused(send(vector, issued, monkeypatch))
    assert AnsweredHandshake.objects.count() == 0
