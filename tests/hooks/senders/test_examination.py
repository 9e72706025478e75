"""How a call is examined: secrets, headers, time, event ids, handshakes, and any input at all."""

import hmac
import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hooks.senders import (
    PRESETS,
    Call,
    Greeting,
    HmacOptions,
    Refusal,
    RefusalReason,
    Rules,
    Strength,
    Verified,
    diagnose,
    examine,
    preset_with,
)
from hooks.senders.vectors import Vector, shipped_vectors
from tests.examples import examples
from tests.hooks.senders.signed import (
    GITHUB,
    NOW,
    call,
    github_call,
    hex_digest,
    outcome_of,
    vector,
    with_call,
    with_header,
    without_header,
)

ACCEPTED = [each for each in shipped_vectors() if each.expected["ok"]]


def presented(accepted: Vector) -> list[tuple[str, str]]:
    """The first signature header of a call, if its sender signs in a header."""
    rules = accepted.rules
    preset = preset_with(rules.preset, rules.hmac)
    assert preset is not None
    names = tuple(names.signature.lower() for names in preset.headers)
    found = [pair for pair in accepted.call.headers if pair[0].lower().startswith(names or "/")]
    return found[:1]


def reason_of(outcome: object) -> RefusalReason:
    assert isinstance(outcome, Refusal)
    return outcome.reason


# --- Secrets -------------------------------------------------------------------------------------


def test_each_live_secret_is_tried_and_the_one_that_matched_is_named() -> None:
    signed = github_call("old", b"{}")

    assert examine(GITHUB, ["new", "old"], signed, now=NOW) == Verified(None, 1, Strength.SIGNED)
    assert reason_of(examine(GITHUB, ["new"], signed, now=NOW)) is RefusalReason.SIGNATURE_MISMATCH


@pytest.mark.parametrize("secrets", [["k", "x"], ["x", "k"], ["x", "y"]])
def test_every_secret_and_signature_is_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch, secrets: list[str]
) -> None:
    compared: list[tuple[type, type]] = []
    compare = hmac.compare_digest

    def recorded(expected: Any, given_: Any) -> bool:
        compared.append((type(expected), type(given_)))
        return compare(expected, given_)

    body = b'{"event":{"id":"E1"}}'
    right = f"v1={hex_digest('k', body)}"
    header = ",".join([right, *[f"v1={'0' * 64}"] * 7])
    monkeypatch.setattr(hmac, "compare_digest", recorded)

    examine(Rules("pagerduty"), secrets, call(body, ("X-PagerDuty-Signature", header)), now=NOW)

    assert compared == [(bytes, bytes)] * 16


def test_a_secret_that_another_sender_had_matches_nothing() -> None:
    signed = vector("standard-eighth-signature")
    secrets = ("not base64!", *signed.secrets)

    assert outcome_of(replace(signed, secrets=secrets)) == Verified("m1", 1, Strength.SIGNED)
    assert (
        reason_of(outcome_of(replace(signed, secrets=secrets[:1])))
        is RefusalReason.SIGNATURE_MISMATCH
    )


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in {"cloudevents", "hmac"}])
def test_without_a_secret_every_call_is_refused(name: str) -> None:
    outcome = examine(Rules(name), [], call(b"{}"), now=NOW)

    assert reason_of(outcome) is RefusalReason.NO_SECRET_SET


@pytest.mark.parametrize(
    "rules",
    [Rules("nonsense"), Rules("hmac"), Rules("hmac", HmacOptions("X-Signature", template="x"))],
)
def test_a_sender_that_is_not_set_up_refuses_every_call(rules: Rules) -> None:
    signed = call(b"{}", ("X-Signature", hex_digest("k", b"x")))

    assert reason_of(examine(rules, ["k"], signed, now=NOW)) is RefusalReason.NO_SECRET_SET


# --- Headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identifier", "header"),
    [
        ("github-published", "X-Hub-Signature-256"),
        ("stripe-suite", "Stripe-Signature"),
        ("slack-published", "X-Slack-Signature"),
        ("slack-published", "X-Slack-Request-Timestamp"),
        ("svix-published-v1", "svix-id"),
        ("svix-published-v1", "svix-timestamp"),
        ("svix-published-v1", "svix-signature"),
        ("discord-command", "X-Signature-Ed25519"),
        ("sendgrid-suite", "X-Twilio-Email-Event-Webhook-Signature"),
        ("twilio-published", "X-Twilio-Signature"),
        ("gitlab-token", "X-Gitlab-Token"),
        ("docusign-second-key", "X-DocuSign-Signature-2"),
        ("hubspot-suite-v3", "X-HubSpot-Request-Timestamp"),
    ],
)
@pytest.mark.parametrize("change", ["", "é", "{0},{0}", "\x01"])
def test_a_header_that_is_empty_doubled_or_not_ascii_is_malformed(
    identifier: str, header: str, change: str
) -> None:
    accepted = vector(identifier)
    assert isinstance(outcome_of(accepted), Verified)
    old = next(value for name, value in accepted.call.headers if name.lower() == header.lower())

    outcome = outcome_of(with_header(accepted, header, change.format(old)))

    assert reason_of(outcome) is RefusalReason.SIGNATURE_MALFORMED


@pytest.mark.parametrize(
    "accepted", [each for each in ACCEPTED if presented(each)], ids=lambda accepted: accepted.id
)
def test_a_signature_header_given_twice_is_malformed(accepted: Vector) -> None:
    headers = (*accepted.call.headers, *presented(accepted))

    outcome = outcome_of(with_call(accepted, headers=headers))

    assert reason_of(outcome) is RefusalReason.SIGNATURE_MALFORMED


@pytest.mark.parametrize(
    ("identifier", "header"),
    [
        ("slack-published", "X-Slack-Request-Timestamp"),
        ("svix-published-v1", "svix-id"),
        ("github-published", "X-Hub-Signature-256"),
        ("twilio-published", "X-Twilio-Signature"),
        ("docusign-second-key", "X-DocuSign-Signature-2"),
    ],
)
def test_a_call_without_a_header_of_the_proof_is_refused(identifier: str, header: str) -> None:
    outcome = outcome_of(without_header(vector(identifier), header))

    assert reason_of(outcome) in {
        RefusalReason.SIGNATURE_MISSING,
        RefusalReason.SIGNATURE_MISMATCH,
    }


@pytest.mark.parametrize(
    "time", ["abc", "1e9", "-5", "１７", "1700000000.0", "9" * 33, " 1", "0x1", "01"]
)
def test_a_time_that_is_not_a_number_is_malformed(time: str) -> None:
    outcome = outcome_of(with_header(vector("slack-published"), "X-Slack-Request-Timestamp", time))

    assert reason_of(outcome) is RefusalReason.SIGNATURE_MALFORMED


def test_a_byte_of_the_body_cannot_become_a_digit_of_the_time() -> None:
    options = HmacOptions("X-Signature", template="{body}{timestamp}", timestamp_header="X-Time")
    rules, signature = Rules("hmac", options), hex_digest("k", f"amount=10{NOW}".encode())
    signed = call(b"amount=10", ("X-Signature", signature), ("X-Time", f"{NOW}"))
    moved = call(b"amount=1", ("X-Signature", signature), ("X-Time", f"0{NOW}"))

    assert isinstance(examine(rules, ["k"], signed, now=NOW), Verified)
    outcome = examine(rules, ["k"], moved, now=NOW)
    assert reason_of(outcome) is RefusalReason.SIGNATURE_MALFORMED


@pytest.mark.parametrize("name", ["x-hub-signature-256", "X-HUB-SIGNATURE-256"])
def test_names_of_headers_have_no_case(name: str) -> None:
    signed = github_call("k", b"{}")
    changed = replace(signed, headers=((name, signed.headers[0][1]),))

    assert isinstance(examine(GITHUB, ["k"], changed, now=NOW), Verified)


# --- Time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        (-301, RefusalReason.TIMESTAMP_TOO_NEW),
        (301, RefusalReason.TIMESTAMP_TOO_OLD),
        (300.5, RefusalReason.TIMESTAMP_TOO_OLD),
    ],
)
def test_a_signed_time_outside_the_tolerance_is_refused(
    seconds: float, reason: RefusalReason
) -> None:
    signed = vector("standard-eighth-signature")
    assert isinstance(outcome_of(replace(signed, now=NOW + 300)), Verified)
    assert isinstance(outcome_of(replace(signed, now=NOW - 300)), Verified)

    assert reason_of(outcome_of(replace(signed, now=NOW + seconds))) is reason


def test_an_unsigned_time_is_ignored() -> None:
    options = HmacOptions("X-Signature", timestamp_header="X-Timestamp", id_header="X-Id")
    signed = call(
        b"{}",
        ("X-Signature", hex_digest("k", b"{}")),
        ("X-Timestamp", "1"),
        ("X-Id", "e1"),
    )

    outcome = examine(Rules("hmac", options), ["k"], signed, now=NOW)

    assert outcome == Verified(None, 0, Strength.SIGNED)


def test_the_time_is_judged_only_after_the_signature() -> None:
    signed = with_call(vector("standard-eighth-signature"), body=b"other")

    outcome = outcome_of(replace(signed, now=NOW + 10_000))

    assert reason_of(outcome) is RefusalReason.SIGNATURE_MISMATCH


# --- Event ids -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "event_id"),
    [
        (b'{"id": "e1"}', "e1"),
        (b'{"id": 7}', "7"),
        (b'{"id": true}', None),
        (b'{"id": 1.5}', None),
        (b'{"id": null}', None),
        (b'{"id": ""}', None),
        (b'{"id": ["e1"]}', None),
        (b'{"id": "a\\u0000b"}', None),
        (b'{"id": "\\ud800"}', None),
        (b'{"id": "' + b"x" * 501 + b'"}', None),
        (b'{"id": ' + b"9" * 5_000 + b"}", None),
        (b'{"id": ' + b"9" * 400 + b"}", None),
        (b'{"id": NaN}', None),
        (b'["id"]', None),
        (b"\xff", None),
        ('{"id": "e1"}'.encode("utf-16"), None),
        (b"", None),
        (b'{"id": ' + b"[" * 200_000, None),
        (b'{"id": "' + b'\\"' * 200_000, None),
    ],
)
def test_an_event_id_is_short_printable_text_or_an_integer(
    body: bytes, event_id: str | None
) -> None:
    rules = replace(GITHUB, event_id_pointers=("/id",))

    outcome = examine(rules, ["k"], github_call("k", body), now=NOW)

    assert outcome == Verified(event_id, 0, Strength.SIGNED)


@pytest.mark.parametrize(
    ("first", "second", "event_id"),
    [
        ("a", "b", "a:b"),
        ("a", "b:c", "a:b:c"),
        ("a:b", "c", "a\\:b:c"),
        ("a\\", "b:c", "a\\\\:b:c"),
        ("a\\:b", "c", "a\\\\\\:b:c"),
    ],
)
def test_an_event_id_of_two_parts_says_where_each_ends(
    first: str, second: str, event_id: str
) -> None:
    body = json.dumps({"first": first, "second": second}).encode()
    rules = replace(GITHUB, event_id_pointers=("/first", "/second"))

    outcome = examine(rules, ["k"], github_call("k", body), now=NOW)

    assert outcome == Verified(event_id, 0, Strength.SIGNED)


@pytest.mark.parametrize(("depth", "event_id"), [(128, "e1"), (129, None)])
@pytest.mark.parametrize("text", ["", "[" * 500])
def test_a_body_is_read_to_a_depth_of_128(text: str, depth: int, event_id: str | None) -> None:
    nested = "[" * (depth - 1) + "]" * (depth - 1)
    body = f'{{"text": "{text}", "id": "e1", "nested": {nested}}}'.encode()
    rules = replace(GITHUB, event_id_pointers=("/id",))

    outcome = examine(rules, ["k"], github_call("k", body), now=NOW)

    assert outcome == Verified(event_id, 0, Strength.SIGNED)


def test_pointers_never_read_an_unsigned_body() -> None:
    accepted = vector("gitlab-token")
    rules = replace(accepted.rules, event_id_pointers=("/object_kind",))

    assert outcome_of(replace(accepted, rules=rules)) == Verified(None, 0, Strength.SHARED_SECRET)


# --- Handshakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("challenge=abc", b"abc"),
        ("challenge=" + "a" * 4096, b"a" * 4096),
        ("challenge=" + "a" * 4097, None),
        ("challenge=", None),
        ("challenge=a&challenge=b", None),
        ("challenge=%C3%A9", None),
        ("challenge=%00", None),
    ],
)
def test_an_echo_is_short_printable_ascii(query: str, body: bytes | None) -> None:
    asked = call(b"", method="GET", query=query)

    outcome = examine(Rules("dropbox"), [], asked, now=NOW)

    assert outcome == (
        Greeting(200, (("Content-Type", "text/plain; charset=utf-8"),), body) if body else outcome
    )
    assert (body is None) == isinstance(outcome, Refusal)


def test_no_answer_to_x_signs_a_body_that_is_then_accepted() -> None:
    """Anyone who knows the URL may ask for a CRC, which is made like a signature."""
    asked = call(b"", method="GET", query="crc_token=abc")
    greeting = examine(Rules("x"), ["k"], asked, now=NOW)
    assert isinstance(greeting, Greeting)
    signature = greeting.body.decode().split('"')[3]
    forged = call(b"abc", ("x-twitter-webhooks-signature", signature))

    outcome = examine(Rules("x"), ["k"], forged, now=NOW)

    assert reason_of(outcome) is RefusalReason.SIGNATURE_MISMATCH


# --- Whatever comes ------------------------------------------------------------------------------

TEXT = st.text(max_size=60)
HEADER_NAMES = st.sampled_from(
    sorted({name for preset in PRESETS.values() for name in preset.own_headers[:6]})
)
HEADER_VALUES = st.one_of(
    TEXT,
    st.sampled_from(
        (
            *("v1,AAAA", "t=1700000000,v1=00", "ts=1;h1=00", "v0=00", "sha256=00", "1700000000"),
            *("2021-03-25T05:09:27Z", "0001-01-01T00:00:00+23:59", "application/json", "k"),
            *("application/x-www-form-urlencoded", "MEUCIQ==", "00" * 64, f"v1a,{'A' * 86}=="),
        )
    ),
)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        (
            *(b"[" * 10_000, b'{"signature":{"timestamp":"1","token":"a","signature":"00"}}'),
            *(b'{"value":[{"clientState":"k"}]}', b'{"value":[1]}', b'{"webhookTimestamp":1e400}'),
            *(b"timestamp=1&token=a&signature=00", b"&&&", b'"\\', b'{"a":%s}' % (b"9" * 5_000)),
        )
    ),
)
RULES = st.builds(
    Rules,
    preset=st.sampled_from([*PRESETS, "nonsense"]),
    hmac=st.one_of(
        st.none(),
        st.builds(
            HmacOptions,
            header=st.sampled_from(["X-Signature", "", "é"]),
            algorithm=st.sampled_from(["sha1", "sha512", "md5"]),
            encoding=st.sampled_from(["hex", "base64"]),
            prefix=TEXT,
            template=st.sampled_from(["{body}", "{body}{url}{id}", "{timestamp}.{body}", "{x"]),
            timestamp_header=st.one_of(st.none(), HEADER_NAMES),
            id_header=st.one_of(st.none(), HEADER_NAMES),
            secret_encoding=st.sampled_from(["text", "hex", "base64"]),
        ),
    ),
    verify_token=st.one_of(st.none(), TEXT),
    event_id_pointers=st.lists(TEXT, max_size=3).map(tuple),
    is_handshake_expected=st.booleans(),
    allowed_rate=st.one_of(st.none(), st.integers(0, 100)),
)
CALLS = st.builds(
    Call,
    method=st.one_of(st.sampled_from(["GET", "POST", "OPTIONS"]), TEXT),
    url=st.one_of(TEXT, st.sampled_from(["https://a:b:c/[", "http://[::1/", "https://a:99999/x"])),
    query=st.one_of(
        TEXT,
        st.sampled_from(
            ["crc_token=%zz", "hub.mode=subscribe", "validationToken=a", "challenge=%"]
        ),
    ),
    headers=st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=6).map(tuple),
    body=BODIES,
)
SECRETS = st.lists(
    st.one_of(
        TEXT, st.sampled_from(["k", *(vector.secrets[0] for vector in ACCEPTED if vector.secrets)])
    ),
    max_size=2,
)


@settings(max_examples=examples(600), deadline=None)
@given(rules=RULES, secrets=SECRETS, asked=CALLS)
def test_no_call_makes_the_examination_raise(rules: Rules, secrets: list[str], asked: Call) -> None:
    outcome = examine(rules, secrets, asked, now=NOW)

    assert isinstance(outcome, Verified | Greeting | Refusal)


@settings(max_examples=examples(150), deadline=None)
@given(rules=RULES, secrets=SECRETS, asked=CALLS, reason=st.sampled_from(list(RefusalReason)))
def test_no_call_makes_the_diagnosis_raise(
    rules: Rules, secrets: list[str], asked: Call, reason: RefusalReason
) -> None:
    hints = diagnose(
        rules,
        secrets,
        asked,
        now=NOW,
        refused=Refusal(reason, ""),
        other_hooks=[("other", rules, secrets)],
        public_url="https://moonhook.example",
    )

    assert all(hint.code and hint.sentence for hint in hints)


def fields_of(form: bytes | bytearray) -> list[tuple[str, str]]:
    return parse_qsl(form.decode("latin-1"), keep_blank_values=True, encoding="latin-1")


@settings(max_examples=examples(200), deadline=None)
@given(accepted=st.sampled_from(ACCEPTED).filter(presented), data=st.data())
def test_one_flipped_bit_of_a_signed_body_is_never_accepted(
    accepted: Vector, data: st.DataObject
) -> None:
    assume(accepted.call.body)
    assume(PRESETS[accepted.rules.preset].strength is Strength.SIGNED)
    body = bytearray(accepted.call.body)
    body[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    if accepted.rules.preset == "twilio":
        # It signs what a form says: %2b is %2B.
        assume(fields_of(body) != fields_of(accepted.call.body))

    outcome = outcome_of(with_call(accepted, body=bytes(body)))

    # Malformed: the body of a sender that signs the URL no longer begins like one.
    assert reason_of(outcome) in {
        RefusalReason.SIGNATURE_MISMATCH,
        RefusalReason.SIGNATURE_MALFORMED,
    }
