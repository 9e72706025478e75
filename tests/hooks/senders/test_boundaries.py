"""Signed bytes stay in their fields: of one text's readings, at most one is accepted."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from functools import partial
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding as KeyEncoding
from cryptography.hazmat.primitives.serialization import PublicFormat
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hooks.senders import (
    PRESETS,
    Call,
    HmacOptions,
    InvalidOptionError,
    Preset,
    Refusal,
    RefusalReason,
    Rules,
    Verified,
    check_hmac,
    examine,
    preset_with,
)
from hooks.senders.preset import (
    Algorithm,
    Encoding,
    Layout,
    Scheme,
    TimestampUnit,
)
from tests.examples import examples
from tests.hooks.senders.signed import NOW, URL

SECRET = "a secret of the sender"
WHSEC = f"whsec_{base64.b64encode(SECRET.encode() * 2).decode()}"
ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
P256 = ec.derive_private_key(7, ec.SECP256R1())
ISO_TIME = "2023-11-14T22:13:20Z"
OLD = str(NOW - 5_000)

FIELD = re.compile(r"(\{(?:body|timestamp|id|method|url)\})")
# Values of each field by its placeholder.
Reading = dict[str, str]


def joins_fields(preset: Preset) -> bool:
    return len(FIELD.findall(preset.template)) > 1 and preset.name != "hmac"


# Twilio has tests of its own: its forms have no boundaries.
JOINING = [
    preset for preset in PRESETS.values() if joins_fields(preset) and preset.name != "twilio"
]


# --- Signing one text, however it is divided -----------------------------------------------------


def secret_of(preset: Preset) -> str:
    match preset.scheme:
        case Scheme.STANDARD:
            return WHSEC
        case Scheme.ED25519:
            return ED25519.public_key().public_bytes_raw().hex()
        case Scheme.ECDSA:
            key = P256.public_key().public_bytes(KeyEncoding.DER, PublicFormat.SubjectPublicKeyInfo)
            return base64.b64encode(key).decode()
    return SECRET


def signature_of(preset: Preset, text: bytes) -> str:
    match preset.scheme:
        case Scheme.STANDARD:
            made = hmac.digest(SECRET.encode() * 2, text, "sha256")
            return f"v1,{base64.b64encode(made).decode()}"
        case Scheme.ED25519:
            made = ED25519.sign(text)
        case Scheme.ECDSA:
            made = P256.sign(text, ec.ECDSA(hashes.SHA256()))
        case _:
            made = hmac.digest(SECRET.encode(), text, preset.algorithm)
    written = made.hex() if preset.encoding is Encoding.HEX else base64.b64encode(made).decode()
    return preset.prefix + written


def call_of(preset: Preset, signature: str, reading: Reading) -> Call:
    """The call with these fields, whatever text the signature was made of."""
    timestamp, event_id = reading.get("{timestamp}", ""), reading.get("{id}", "")
    url = reading.get("{url}", URL)
    body = reading.get("{body}", "").encode("latin-1")
    headers: list[tuple[str, str]] = []
    if preset.scheme is Scheme.MAILGUN:
        proof = {"timestamp": timestamp, "token": event_id, "signature": signature}
        body = json.dumps({"signature": proof}).encode()
    elif preset.layout is Layout.FIELDS:
        fields = f"{preset.timestamp_key}={timestamp}{preset.separator}{preset.signature_key}="
        headers = [(preset.headers[0].signature, fields + signature)]
    else:
        names = preset.headers[0]
        headers = [(names.signature, signature)]
        headers += [(names.timestamp, timestamp)] if names.timestamp else []
        headers += [(names.id, event_id)] if names.id else []
    query = url.partition("?")[2]
    return Call(reading.get("{method}", "POST"), url, query, tuple(headers), body)


def text_of(template: str, reading: Reading) -> str:
    return "".join(reading.get(part, part) for part in FIELD.split(template))


# --- Every division of a text --------------------------------------------------------------------

# What a server can pass on: its own URL with a query, and methods that run scripts. A time is
# digits, or as in ISO 8601.
POSSIBLE = {
    "{url}": re.compile(re.escape(URL) + r"(?:[?#][!-~]*)?"),
    "{method}": re.compile(r"[A-Za-z]{1,8}"),
    "{timestamp}": re.compile(r"[0-9]{1,20}|[0-9-]{10}T[0-9:.]{8,18}(?:Z|[+-][0-9:]{5})"),
    "{id}": re.compile(r"[ -~]+"),
    "{body}": re.compile(r".*", re.DOTALL),
}


def readings(template: str, text: str) -> Iterator[Reading]:
    """Every way in which the text can be read as the template's fields."""
    return (dict(pairs) for pairs in _divided(FIELD.split(template), text))


def _divided(parts: list[str], text: str) -> Iterator[tuple[tuple[str, str], ...]]:
    literal, *rest = parts
    if not text.startswith(literal):
        return
    text = text.removeprefix(literal)
    if not rest:
        if not text:
            yield ()
        return
    field, *others = rest
    ends = [len(text)] if others == [""] else range(len(text) + 1)
    for end in ends:
        if POSSIBLE[field].fullmatch(text, 0, end):
            for following in _divided(others, text[end:]):
                yield ((field, text[:end]), *following)


def accepted_readings(rules: Rules, reading: Reading) -> list[Reading]:
    preset = preset_with(rules.preset, rules.hmac)
    assert preset is not None
    text = text_of(preset.template, reading)
    signature, secret = signature_of(preset, text.encode("latin-1")), secret_of(preset)
    return [
        each
        for each in readings(preset.template, text)
        if not isinstance(
            examine(rules, [secret], call_of(preset, signature, each), now=NOW), Refusal
        )
    ]


# --- Fields that look like their neighbours ------------------------------------------------------

TIMES = {
    TimestampUnit.SECONDS: st.integers(-100, 100).map(lambda age: str(NOW - age)),
    TimestampUnit.MILLISECONDS: st.integers(-9, 9).map(lambda age: str(1000 * (NOW - age))),
    TimestampUnit.ISO_8601: st.sampled_from([ISO_TIME, "2023-11-14T22:13:20.5+00:00"]),
}
PIECES = st.sampled_from(
    [
        *("a", "1", "0", ".", ":", "|", "?", "#", "/", "&q=", " ", '"', ",", "POST", "GET"),
        *("{", "}", "[", "]", '{"a":', '{"b":1}', "[1]", str(NOW), f"{NOW}000", OLD, ISO_TIME),
        *(f".{NOW}.", f":{NOW}:", f"{URL}?", URL, f"|{URL}"),
    ]
)


def texts(most: int) -> st.SearchStrategy[str]:
    return st.lists(PIECES, max_size=most).map("".join)


JSON = st.recursive(
    st.sampled_from([1, "", "x", "{", '"', f"{URL}?a", f".{NOW}.", '{"b":1}']),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "{", ":", "}"]), inner, max_size=2)
    ),
    max_leaves=4,
)
QUERIES = texts(4).filter(lambda text: " " not in text).map(lambda text: f"?{text}")


def readings_like(template: str, unit: TimestampUnit) -> st.SearchStrategy[Reading]:
    values = {
        "{body}": texts(5) | JSON.map(partial(json.dumps, separators=(",", ":"))),
        "{id}": texts(4).filter(bool),
        "{timestamp}": TIMES[unit],
        "{url}": (st.just("") | QUERIES).map(URL.__add__),
        "{method}": st.sampled_from(["GET", "POST"]),
    }
    return st.fixed_dictionaries({field: values[field] for field in FIELD.findall(template)})


@pytest.mark.parametrize("preset", JOINING, ids=lambda preset: preset.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_signed_text_of_a_sender_has_one_reading(preset: Preset, data: st.DataObject) -> None:
    reading = data.draw(readings_like(preset.template, preset.timestamp_unit))

    assert len(accepted_readings(Rules(preset.name), reading)) <= 1


LITERALS = st.sampled_from(["", ".", ":", "|", " ", "..", "/", "1", "?", "{", "T"])
TEMPLATES = st.builds(
    lambda fields, at, literals: "".join(
        field + literal
        for field, literal in zip(
            [*fields[:at], "{body}", *fields[at:]], literals[: len(fields) + 1], strict=True
        )
    ),
    st.lists(
        st.sampled_from(["{id}", "{timestamp}", "{method}", "{url}"]), max_size=3, unique=True
    ),
    st.integers(0, 3),
    st.lists(LITERALS, min_size=4, max_size=4),
)


@settings(max_examples=examples(400), deadline=None)
@given(template=TEMPLATES, data=st.data())
@example(template="{id}.{body}", data=None)
@example(template="{method} {url}|{body}", data=None)
def test_one_signed_text_of_a_template_has_one_reading(
    template: str, data: st.DataObject | None
) -> None:
    options = HmacOptions(
        "X-Signature", template=template, timestamp_header="X-Time", id_header="X-Id"
    )
    try:
        check_hmac(options)
    except InvalidOptionError:
        assume(data is None)
        pytest.fail(f"{template} is a template")
    if data is not None:
        reading = data.draw(readings_like(template, TimestampUnit.SECONDS))

        assert len(accepted_readings(Rules("hmac", options), reading)) <= 1


# --- What was shown ------------------------------------------------------------------------------


def outcome_of_moved(preset: Preset, rules: Rules, signed: Reading, moved: Reading) -> Refusal:
    """The sender's own call is accepted; returns what becomes of the one whose bytes moved."""
    text = text_of(preset.template, signed)
    assert text_of(preset.template, moved) == text
    signature, secret = signature_of(preset, text.encode()), secret_of(preset)
    own = examine(rules, [secret], call_of(preset, signature, signed), now=NOW)
    assert isinstance(own, Verified)
    refused = examine(rules, [secret], call_of(preset, signature, moved), now=NOW)
    assert isinstance(refused, Refusal)
    return refused


@pytest.mark.parametrize("name", ["standard-webhooks", "svix", "gitlab"])
def test_an_old_call_of_standard_webhooks_does_not_become_a_new_one(name: str) -> None:
    preset = PRESETS[name]
    signed = {"{id}": "msg_1", "{timestamp}": OLD, "{body}": f"{NOW}.order"}
    moved = {"{id}": f"msg_1.{OLD}", "{timestamp}": str(NOW), "{body}": "order"}
    text = text_of(preset.template, signed)
    signature = signature_of(preset, text.encode())
    assert text_of(preset.template, moved) == text

    refused = examine(Rules(name), [WHSEC], call_of(preset, signature, moved), now=NOW)

    assert refused == Refusal(
        RefusalReason.SIGNATURE_MALFORMED, "the id contains “.”, which ends it in the signed text"
    )


@pytest.mark.parametrize("event_id", ["e1.a", "e1.a.b", ".e1", "e1.", "."])
@pytest.mark.parametrize("template", ["{id}.{body}", "{body}.{id}", "{timestamp}.{id}.{body}"])
def test_an_id_with_the_separator_beside_it_is_malformed(template: str, event_id: str) -> None:
    options = HmacOptions(
        "X-Signature", template=template, timestamp_header="X-Time", id_header="X-Id"
    )
    rules = Rules("hmac", options)
    preset = preset_with("hmac", options)
    assert preset is not None
    fields = {"{timestamp}": str(NOW), "{body}": "a.b"}

    def outcome(identifier: str) -> object:
        reading = fields | {"{id}": identifier}
        signature = signature_of(preset, text_of(template, reading).encode())
        return examine(rules, [SECRET], call_of(preset, signature, reading), now=NOW)

    assert outcome("e1-a") == Verified("e1-a", 0, "signed")
    refused = outcome(event_id)
    assert isinstance(refused, Refusal)
    assert refused.reason is RefusalReason.SIGNATURE_MALFORMED


def test_an_id_that_forms_a_separator_with_its_end_is_malformed() -> None:
    options = HmacOptions("X-Signature", template="{id}--{body}", id_header="X-Id")
    preset = preset_with("hmac", options)
    assert preset is not None
    signed = {"{id}": "e1", "{body}": "-order"}
    moved = {"{id}": "e1-", "{body}": "order"}

    refused = outcome_of_moved(preset, Rules("hmac", options), signed, moved)

    assert refused.reason is RefusalReason.SIGNATURE_MALFORMED


def test_a_query_with_the_separator_beside_the_url_is_malformed() -> None:
    options = HmacOptions("X-Signature", template="{method} {url}|{body}")
    preset = preset_with("hmac", options)
    assert preset is not None
    signed = {"{method}": "POST", "{url}": f"{URL}?q=1", "{body}": "a|b"}
    moved = {"{method}": "POST", "{url}": f"{URL}?q=1|a", "{body}": "b"}

    refused = outcome_of_moved(preset, Rules("hmac", options), signed, moved)

    assert refused.reason is RefusalReason.SIGNATURE_MALFORMED


def test_a_part_of_a_square_event_does_not_become_the_event() -> None:
    signed = {"{url}": f"{URL}?q=", "{body}": '{"a":{"b":1}}'}
    moved = {"{url}": f'{URL}?q={{"a":', "{body}": '{"b":1}}'}

    refused = outcome_of_moved(PRESETS["square"], Rules("square"), signed, moved)

    assert refused == Refusal(RefusalReason.SIGNATURE_MISMATCH, "the body is not a JSON object")


def test_a_url_in_a_trello_event_does_not_become_the_url_of_the_call() -> None:
    signed = {"{body}": f'{{"text":"{URL}?"}}', "{url}": URL}
    moved = {"{body}": '{"text":"', "{url}": f'{URL}?"}}{URL}'}

    refused = outcome_of_moved(PRESETS["trello"], Rules("trello"), signed, moved)

    assert refused == Refusal(RefusalReason.SIGNATURE_MISMATCH, "the body is not a JSON object")


@pytest.mark.parametrize(
    ("query", "body"),
    [("?q=1[", "1]"), ("?q=1[1]", ""), ("?q=", "1[1]"), ("", "?q=1[1]")],
)
def test_bytes_of_hubspot_do_not_move_between_query_and_body(query: str, body: str) -> None:
    common = {"{method}": "POST", "{timestamp}": f"{NOW}000"}
    signed = common | {"{url}": f"{URL}?q=1", "{body}": "[1]"}
    moved = common | {"{url}": URL + query, "{body}": body}

    refused = outcome_of_moved(PRESETS["hubspot"], Rules("hubspot"), signed, moved)

    assert refused.reason is RefusalReason.SIGNATURE_MALFORMED


@pytest.mark.parametrize("query", ["", "?q=1"])
def test_a_post_of_hubspot_may_be_without_a_body(query: str) -> None:
    preset = PRESETS["hubspot"]
    reading = {"{method}": "POST", "{timestamp}": f"{NOW}000", "{url}": URL + query, "{body}": ""}

    assert accepted_readings(Rules("hubspot"), reading) == [reading]
    call = call_of(preset, "AAAA", reading)
    assert isinstance(examine(Rules("hubspot"), [SECRET], call, now=NOW), Refusal)


def test_a_get_of_hubspot_has_no_body() -> None:
    common = {"{method}": "GET", "{timestamp}": f"{NOW}000"}
    signed = common | {"{url}": f"{URL}?q=1", "{body}": ""}
    moved = common | {"{url}": URL, "{body}": "?q=1"}

    refused = outcome_of_moved(PRESETS["hubspot"], Rules("hubspot"), signed, moved)

    assert refused.reason is RefusalReason.SIGNATURE_MALFORMED


@pytest.mark.parametrize(
    "template",
    [
        *("{url}{body}", "{body}{url}", "{id}{body}", "{body}{id}", "{timestamp}{id}.{body}"),
        *("{url}{timestamp}{body}", "{body}{timestamp}{url}", "{url}{method}.{body}"),
        *("{id}{timestamp}.{body}", "{body}{method}{timestamp}{url}"),
    ],
)
def test_a_template_without_a_boundary_is_refused(template: str) -> None:
    with pytest.raises(InvalidOptionError) as error:
        check_hmac(
            HmacOptions(
                "X-Signature", template=template, timestamp_header="X-Time", id_header="X-Id"
            )
        )

    assert error.value.field == "template"


@pytest.mark.parametrize(
    "template",
    [
        *(
            "{timestamp}{body}",
            "{body}{timestamp}",
            "{method}{url}|{body}",
            "{id}.{timestamp}{body}",
        ),
        *("{timestamp}{method}{url} {body}", "{body}.{id}", "{body}|{url}"),
    ],
)
def test_a_template_whose_fields_stand_apart_is_accepted(template: str) -> None:
    check_hmac(
        HmacOptions("X-Signature", template=template, timestamp_header="X-Time", id_header="X-Id")
    )


@pytest.mark.parametrize(("name", "body"), [("square", "{}"), ("hubspot", "[]"), ("trello", "{}")])
def test_a_signed_url_has_no_fragment(name: str, body: str) -> None:
    preset = PRESETS[name]
    reading = {"{method}": "POST", "{timestamp}": f"{NOW}000", "{body}": body}
    text = text_of(preset.template, reading | {"{url}": f"{URL}#a"})
    call = call_of(preset, signature_of(preset, text.encode()), reading | {"{url}": f"{URL}#a"})

    refused = examine(Rules(name), [SECRET], call, now=NOW)

    assert refused == Refusal(RefusalReason.SIGNATURE_MALFORMED, "the URL has a fragment")


# --- Twilio --------------------------------------------------------------------------------------


FORM = "application/x-www-form-urlencoded"


def twilio_call(text: str, url: str, body: bytes, content_type: str = FORM) -> Call:
    """A call with the signature of the text."""
    made = hmac.digest(SECRET.encode(), text.encode(), Algorithm.SHA1)
    headers = (
        ("X-Twilio-Signature", base64.b64encode(made).decode()),
        ("Content-Type", content_type),
    )
    return Call("POST", url, url.partition("?")[2], headers, body)


@pytest.mark.parametrize(
    ("form", "query"),
    [("Digits=1234", ""), ("Digits1234=", ""), ("D=igits1234", ""), ("igits=1234", "D")],
)
def test_forms_of_twilio_have_no_boundaries(form: str, query: str) -> None:
    """As docs/senders.md says."""
    call = twilio_call(f"{URL}?q=Digits1234", f"{URL}?q={query}", form.encode())

    assert isinstance(examine(Rules("twilio"), [SECRET], call, now=NOW), Verified)


@pytest.mark.parametrize("end", ["&", "#", "%26", "&bodySHA256="])
def test_a_message_to_twilio_does_not_sign_another_body(end: str) -> None:
    body = b'{"forged": true}'
    message = f"&bodySHA256={hashlib.sha256(body).hexdigest()}{end}"
    form = {"Body": message, "From": "+14158675309"}
    text = f"{URL}?q=" + "".join(name + value for name, value in form.items())
    own = twilio_call(text, f"{URL}?q=", urlencode(form).encode())
    forged = twilio_call(text, text, body, "application/json")

    assert isinstance(examine(Rules("twilio"), [SECRET], own, now=NOW), Verified)
    assert isinstance(examine(Rules("twilio"), [SECRET], forged, now=NOW), Refusal)


@pytest.mark.parametrize("moved", range(5))
def test_a_body_that_twilio_signed_by_its_hash_does_not_become_a_form(moved: int) -> None:
    body = b'{"paid": false}'
    query = f"?bodySHA256={hashlib.sha256(body).hexdigest()}"
    own = twilio_call(URL + query, URL + query, body, "application/json")
    url, form = [
        (URL + query, b"="),
        (URL + query, b"&=&="),
        (URL, urlencode({query: ""}).encode()),
        (URL, urlencode({"?": "", "bodySHA256=": query[-64:]}).encode()),
        (URL + query[:-1], urlencode({query[-1]: ""}).encode()),
    ][moved]
    forged = twilio_call(URL + query, url, form)

    assert isinstance(examine(Rules("twilio"), [SECRET], own, now=NOW), Verified)
    assert isinstance(examine(Rules("twilio"), [SECRET], forged, now=NOW), Refusal)


@pytest.mark.parametrize("form", [b"=", b"=&="])
def test_a_form_of_twilio_without_any_text_counts_as_its_body(form: bytes) -> None:
    own = twilio_call(f"{URL}?q=1", f"{URL}?q=1", b"")
    forged = twilio_call(f"{URL}?q=1", f"{URL}?q=1", form)

    assert isinstance(examine(Rules("twilio"), [SECRET], own, now=NOW), Verified)
    assert isinstance(examine(Rules("twilio"), [SECRET], forged, now=NOW), Refusal)
