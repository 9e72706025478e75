"""Test events are what the verification takes for the sender's own."""

import json
from typing import Any
from urllib.parse import parse_qs

import pytest

from hooks.senders import (
    PRESETS,
    HmacOptions,
    InvalidSecretError,
    Refusal,
    Rules,
    SampleEvent,
    Verified,
    check_secret,
    examine,
    sample_event,
)
from hooks.senders.signing import samples

NOW = 1_790_000_000.0
URL = "https://hooks.example/hook/a/b/mhc_token"
WHSEC = "whsec_" + "A" * 32
SECRETS = {
    "whsec": WHSEC,
    "whsec-or-whpk": WHSEC,
    "none": None,
    "ed25519-hex": None,
    "spki-p256": None,
}
PUBLIC = {"ed25519-hex", "spki-p256"}
HMACS = [
    HmacOptions("X-Signature"),
    HmacOptions("X-Signature", algorithm="sha512", encoding="base64", prefix="v="),
    HmacOptions(
        "X-Signature",
        template="{method}.{url}.{timestamp}.{id}.{body}",
        timestamp_header="X-Time",
        id_header="X-Id",
        secret_encoding="hex",
    ),
]


def rules_of(name: str, hmac: HmacOptions | None = None) -> Rules:
    return Rules(preset=name, hmac=hmac or (HMACS[0] if name == "hmac" else None))


def secret_for(name: str) -> str | None:
    return SECRETS.get(str(PRESETS[name].secret), "geheim")


def verified(rules: Rules, event: SampleEvent, now: float = NOW) -> Any:
    secrets = [] if event.secret is None else [check_secret(rules.preset, rules.hmac, event.secret)]
    return examine(rules, secrets, event.call, now=now)


def test_every_sender_has_an_event_and_no_other() -> None:
    assert samples().keys() == PRESETS.keys()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_event_of_a_sender_is_verified(name: str) -> None:
    rules = rules_of(name)

    event = sample_event(rules, secret_for(name), URL, now=NOW)

    outcome = verified(rules, event)
    assert isinstance(outcome, Verified), outcome
    assert outcome.strength == PRESETS[name].strength
    assert "%" not in event.call.body.decode().replace("%2B", "")


@pytest.mark.parametrize("name", sorted(name for name in PRESETS if PRESETS[name].takes_secret))
def test_another_body_or_secret_is_not(name: str) -> None:
    rules = rules_of(name)
    event = sample_event(rules, secret_for(name), URL, now=NOW)
    other = sample_event(rules, secret_for(name), URL, now=NOW)
    if PRESETS[name].strength == "signed":
        call = event.call.__class__(
            event.call.method, URL, "", event.call.headers, other.call.body + b" "
        )
        assert isinstance(verified(rules, event._replace(call=call)), Refusal)
    wrong = "whsec_" + "B" * 32 if secret_for(name) == WHSEC else "anderes"
    if str(PRESETS[name].secret) in PUBLIC:
        wrong = other.secret or ""
    assert isinstance(verified(rules, event._replace(secret=wrong)), Refusal)


@pytest.mark.parametrize("hmac", HMACS, ids=["body", "base64", "all-fields"])
def test_options_of_the_sender_hmac_are_applied(hmac: HmacOptions) -> None:
    rules = rules_of("hmac", hmac)

    event = sample_event(rules, "00ff" * 8, URL, now=NOW)

    assert isinstance(verified(rules, event), Verified)


@pytest.mark.parametrize("name", ["discord", "sendgrid"])
def test_a_public_key_is_replaced_by_one_of_the_event(name: str) -> None:
    first, second = (sample_event(rules_of(name), None, URL, now=NOW) for _ in "12")

    assert first.secret != second.secret
    assert isinstance(verified(rules_of(name), first), Verified)


def test_a_standard_webhook_with_a_public_key() -> None:
    whpk = "whpk_" + "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    rules = rules_of("standard-webhooks")

    event = sample_event(rules, whpk, URL, now=NOW)

    assert event.secret not in (None, whpk)
    assert isinstance(verified(rules, event), Verified)


@pytest.mark.parametrize("name", ["github", "stripe", "twilio", "mailgun", "gitlab-token"])
def test_a_sender_without_its_secret(name: str) -> None:
    with pytest.raises(InvalidSecretError):
        sample_event(rules_of(name), None, URL, now=NOW)


def test_a_hook_without_a_sender_gets_a_body_alone() -> None:
    event = sample_event(None, None, URL, now=NOW)

    assert event.secret is None
    assert json.loads(event.call.body).keys() == {"id", "type", "createdAt"}


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_each_event_is_a_new_one(name: str) -> None:
    rules = rules_of(name)
    outcomes = [
        verified(rules, sample_event(rules, secret_for(name), URL, now=NOW + n), NOW + n)
        for n in range(2)
    ]
    ids = [outcome.event_id for outcome in outcomes]
    assert ids[0] is None or ids[0] != ids[1]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_bodies_are_of_their_type(name: str) -> None:
    call = sample_event(rules_of(name), secret_for(name), URL, now=NOW).call
    content_type = dict(call.headers)["Content-Type"]

    if content_type.endswith("json"):
        assert json.loads(call.body)
    else:
        assert parse_qs(call.body.decode(), strict_parsing=True)
