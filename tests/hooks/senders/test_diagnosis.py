"""Hints for refused calls: each was tried, and none tells a secret."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from hooks.senders import Hint, HmacOptions, Refusal, Rules, diagnose
from hooks.senders.vectors import Vector
from tests.hooks.senders.signed import (
    GITHUB,
    NOW,
    call,
    github_call,
    hex_digest,
    outcome_of,
    vector,
    with_call,
)

SECRET = "c2VjcmV0LW9mLWFsaWNl"
BODY = b'{"b": 1, "a": "/x"}'


def hints_of(refused_call: Vector, **context: Any) -> tuple[Hint, ...]:
    refused = outcome_of(refused_call)
    assert isinstance(refused, Refusal)
    return diagnose(
        refused_call.rules,
        refused_call.secrets,
        refused_call.call,
        now=refused_call.now,
        refused=refused,
        **context,
    )


def github(secret: str, body: bytes = BODY, received: bytes = BODY) -> Vector:
    """A call that was signed with this secret and this body, at alice's hook."""
    signed = replace(github_call(secret, body), body=received)
    return Vector("", GITHUB, (SECRET,), signed, NOW, {})


def test_a_secret_that_was_set_since_is_not_said_to_be_missing() -> None:
    early = vector("github-no-secret")
    refused = outcome_of(early)
    assert isinstance(refused, Refusal)

    [hint] = diagnose(early.rules, ["other"], early.call, now=early.now, refused=refused)

    assert hint.code == "no-secret"
    assert "One is set now" in hint.sentence


@pytest.mark.parametrize(
    ("refused_call", "code"),
    [
        (github(f"{SECRET}\n"), "secret-trimmed"),
        (github(f"{SECRET} "), "secret-trimmed"),
        (replace(github(SECRET), secrets=(f"{SECRET}\n",)), "secret-trimmed"),
        (github("secret-of-alice"), "secret-base64-decoded"),
        (github("secret-of-mallory"), "secret-unknown"),
        (github(SECRET, BODY + b"\n"), "body-trailing-newline"),
        (github(SECRET, BODY, BODY + b"\r\n"), "body-trailing-newline"),
        (github(SECRET, b'{"b":1,"a":"/x"}'), "body-reserialised"),
        (github(SECRET, b'{"b":1,"a":"\\/x"}'), "body-reserialised"),
        (github(SECRET, b'{\n  "b": 1,\n  "a": "/x"\n}'), "body-reserialised"),
        (github(SECRET, b'{"b":"\\u00e9"}', '{"b": "é"}'.encode()), "body-reserialised"),
        (vector("standard-secret-as-text"), "secret-not-decoded"),
        (vector("hmac-hex-secret-as-text"), "secret-hex-decoded"),
        (vector("hmac-sha1-instead"), "algorithm"),
        (vector("github-base64"), "encoding"),
        (vector("github-called-by-bitbucket"), "other-preset"),
        (vector("github-sha1-only"), "weaker-signature-only"),
        (vector("stripe-v0-only"), "weaker-signature-only"),
        (vector("twilio-http-behind-https"), "url-scheme"),
        (vector("twilio-www"), "url-host"),
        (vector("standard-milliseconds"), "timestamp-unit"),
        (vector("zendesk-time-is-a-number"), "timestamp-unit"),
        (vector("github-no-secret"), "no-secret"),
        (vector("github-empty-signature"), "signature-malformed"),
        (vector("slack-challenge-not-ascii"), "handshake"),
    ],
)
def test_the_first_cause_that_fits_is_named(refused_call: Vector, code: str) -> None:
    assert hints_of(refused_call)[0].code == code


def test_a_retired_secret_is_named_by_its_end() -> None:
    ended_at = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

    (hint,) = hints_of(github("retired"), retired_secrets=[("retired", ended_at)])

    assert hint.code == "previous-secret"
    assert "ended at 2026-11-22 12:00 UTC" in hint.sentence


@pytest.mark.parametrize("theirs", [GITHUB, Rules("meta"), Rules("stripe")])
def test_another_hook_is_named_by_its_label(theirs: Rules) -> None:
    other = ("orders, created 1 May", theirs, ("secret of the other hook",))

    (hint,) = hints_of(github("secret of the other hook"), other_hooks=[other])

    assert hint.code == "other-hook"
    assert "orders, created 1 May" in hint.sentence


@pytest.mark.parametrize("host", ["hooks.example.org", "hooks.example.org:8443"])
def test_the_public_url_is_tried_for_a_signed_url(host: str) -> None:
    options = HmacOptions("X-Signature", template="{url} {body}")
    material = f"https://{host}/hook ".encode() + BODY
    signed = call(BODY, ("X-Signature", hex_digest(SECRET, material)))
    refused_call = Vector(
        "",
        Rules("hmac", options),
        (SECRET,),
        replace(signed, url="https://a.example/hook"),
        NOW,
        {},
    )

    (hint,) = hints_of(refused_call, public_url=f"https://{host}")

    assert hint.code == "url-host"
    assert f"begins with https://{host}." in hint.sentence


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("stripe-412s-old", "its time is 412 s old, and the hook accepts 300 s"),
        ("standard-too-early", "its time is 301 s in the future, and the hook accepts 300 s"),
        ("standard-tolerance-of-the-hook", "its time is 61 s old, and the hook accepts 60 s"),
    ],
)
def test_times_are_told_in_words(identifier: str, words: str) -> None:
    (hint,) = hints_of(vector(identifier))

    assert hint.code == "time"
    assert words in hint.sentence


def test_a_late_call_is_still_recognised_by_its_signature() -> None:
    refused_call = with_call(vector("standard-secret-as-text"))

    assert hints_of(replace(refused_call, now=NOW + 86_400))[0].code == "secret-not-decoded"


@pytest.mark.parametrize(
    "refused_call",
    [
        github(f"{SECRET}\n"),
        github("secret-of-alice"),
        github("retired"),
        github("secret-of-mallory"),
        vector("stripe-412s-old"),
        vector("twilio-www"),
        vector("gitlab-token-twice"),
        vector("meta-handshake-wrong-token"),
    ],
)
def test_no_hint_tells_a_secret_a_signature_or_the_url(refused_call: Vector) -> None:
    ended_at = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

    said = json.dumps(
        [hint.sentence for hint in hints_of(refused_call, retired_secrets=[("retired", ended_at)])]
    )

    told = [*refused_call.secrets, "secret-of-alice", "retired", "/hook", "meatyhamhock"]
    values = [value for _, value in refused_call.call.headers if "/" not in value]
    assert [each for each in (*told, *values) if each in said] == []
