"""The table of senders, and what may be set for one: secrets, options of HMAC, pointers."""

from pathlib import Path
from typing import Any

import pytest

from hooks.senders import (
    PRESETS,
    HmacOptions,
    InvalidOptionError,
    InvalidSecretError,
    RefusalReason,
    Rules,
    Strength,
    check_hmac,
    check_pointers,
    check_secret,
    headers_to_keep,
)
from hooks.senders.preset import PresetError, read_presets

TABLE = Path(__file__).resolve().parents[3] / "hooks" / "senders" / "presets.toml"
NAMES = (
    "standard-webhooks svix github gitlab gitlab-token bitbucket stripe slack shopify twilio meta "
    "microsoft-graph dropbox x discord zoom linear sentry paddle trello pagerduty zendesk square "
    "mailgun sendgrid hubspot typeform calendly intercom docusign asana xero cloudevents hmac"
)
ED25519_KEY = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
WHSEC = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def row(**changes: Any) -> str:
    """A row like GitHub's, with fields changed; None leaves one out."""
    fields: dict[str, Any] = {
        "title": "A",
        "strength": "signed",
        "scheme": "hmac",
        "secret": "text",
        "retries": "none",
        "steps": ["Paste it."],
        "page": "Its page",
    } | changes
    written = {
        name: str(value).lower() if isinstance(value, bool) else repr(value)
        for name, value in fields.items()
        if value is not None
    }
    lines = "\n".join(f"{name} = {value}" for name, value in written.items())
    return f"[a]\n{lines}\n" + "headers = [{ signature = 'X-Signature' }]\n"


def test_the_senders_are_those_of_the_interface_in_its_order() -> None:
    assert list(PRESETS) == NAMES.split()


def test_a_row_is_read() -> None:
    preset = read_presets(row(accepted_status=204, refuses_body_hash=True))["a"]

    assert (preset.name, preset.accepted_status, preset.refuses_body_hash) == ("a", 204, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a", "presets.toml is not TOML"),
        ("a = 1", "a: is not a table"),
        (row(colour="red"), "a: unknown field colour"),
        (row(title=None), "a: title is missing"),
        (row(title=1), "a: title is not of type str"),
        (row(accepted_status="202"), "a: accepted_status is not of type int"),
        (row(patience_seconds=True), "a: patience_seconds is not of type int"),
        (row(refuses_body_hash=1), "a: refuses_body_hash is not of type bool"),
        (row(strength="strong"), "a: strength is not one of signed"),
        (row(steps="Paste it."), "a: steps is not a list of strings"),
        (row(steps=[]), "a: steps or methods is empty"),
        (row(template="{url}"), "a: strength and template contradict each other"),
        (row(template="{timestamp}{body}"), "a: tolerance_seconds is missing"),
        (row(template="{url}{body}"), "a: template does not say where a field ends"),
        (row(tolerance_seconds=9), "a: tolerance_seconds is out of range"),
        (row(separator=","), "a: layout and separator contradict each other"),
        (row(layout="fields", separator=","), "a: layout needs timestamp_key"),
        (row(event_id_pointers=["id"]), "a: event_id_pointers has no JSON pointer"),
        (row(accepted_status=201), "a: accepted_status is not 200, 202 or 204"),
        (row().replace("'X-Signature'", "'X Signature'"), "a: headers has a value"),
        (row().replace("signature =", "header ="), "a: headers has a table without"),
        (row().replace("[{ signature = 'X-Signature' }]", "[]"), "a: headers is not a list"),
    ],
)
def test_a_wrong_row_is_an_error_that_names_it(text: str, problem: str) -> None:
    with pytest.raises(PresetError, match=problem):
        read_presets(text)


@pytest.mark.parametrize(
    ("status", "names"),
    [(200, "slack meta mailgun paddle x xero"), (204, "discord")],
)
def test_these_senders_want_another_status_than_202(status: int, names: str) -> None:
    found = {name for name, preset in PRESETS.items() if preset.accepted_status == status}

    assert found == set(names.split())


def test_these_senders_repeat_bodies_of_distinct_events_or_count_attempts_in_them() -> None:
    found = {name for name, preset in PRESETS.items() if preset.refuses_body_hash}

    assert found == {"dropbox", "hubspot", "intercom", "docusign"}


@pytest.mark.parametrize(
    ("strength", "names"),
    [
        (Strength.BODY_UNSIGNED, {"mailgun"}),
        (Strength.SHARED_SECRET, {"gitlab-token", "microsoft-graph"}),
        (Strength.HANDSHAKE_ONLY, {"cloudevents"}),
    ],
)
def test_these_senders_do_not_sign_the_body(strength: Strength, names: set[str]) -> None:
    assert {name for name, preset in PRESETS.items() if preset.strength is strength} == names


def test_an_event_id_comes_from_signed_material() -> None:
    found = {name for name, preset in PRESETS.items() if preset.has_event_id}

    assert found == {
        *("standard-webhooks", "svix", "gitlab", "stripe", "slack", "discord", "paddle", "trello"),
        *("pagerduty", "square", "mailgun", "typeform", "intercom", "docusign"),
    }


def test_reasons_have_the_names_of_the_interface() -> None:
    names = (
        "WrongToken NetworkNotAllowed MethodNotAllowed BodyTooLarge NoSecretSet SignatureMissing "
        "SignatureMalformed SignatureMismatch TimestampTooOld TimestampTooNew HandshakeRefused "
        "RateLimited Busy QueueFull"
    )

    assert " ".join(RefusalReason) == names


def test_the_headers_that_explain_a_refusal_are_kept() -> None:
    kept = headers_to_keep(Rules("hmac", HmacOptions("X-My-Signature")))

    assert {"x-my-signature", "x-hub-signature-256", "x-docusign-signature-100", "host"} <= kept
    assert {"authorization", "cookie"} & kept == set()


# --- Secrets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "pasted", "stored"),
    [
        ("github", " s3cr3t\r\n", "s3cr3t"),
        ("stripe", WHSEC, WHSEC),
        ("standard-webhooks", f"\t{WHSEC}\n", WHSEC),
        ("standard-webhooks", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4", None),
        ("gitlab", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", None),
        ("discord", ED25519_KEY.upper(), None),
    ],
)
def test_a_pasted_secret_is_stripped(sender: str, pasted: str, stored: str | None) -> None:
    assert check_secret(sender, None, pasted) == (stored or pasted)


@pytest.mark.parametrize(
    ("sender", "value"),
    [
        ("github", " \n"),
        ("github", "x" * 1_001),
        ("github", "two\nlines"),
        ("github", "nul\0"),
        ("github", "\ud800"),
        ("standard-webhooks", "whsec_not-base64!"),
        ("standard-webhooks", "whsec_c2hvcnQ="),
        ("standard-webhooks", "whsec_" + "A" * 88),
        ("standard-webhooks", "whpk_c2hvcnQ="),
        ("gitlab", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="),
        ("discord", ED25519_KEY[:-1]),
        ("discord", "zz" * 32),
        ("sendgrid", "AAAA"),
        ("sendgrid", "MCowBQYDK2VwAyEAA6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg="),
        ("cloudevents", "s3cr3t"),
        ("nonsense", "s3cr3t"),
    ],
)
def test_a_value_that_is_no_secret_of_its_sender_is_refused_unechoed(
    sender: str, value: str
) -> None:
    with pytest.raises(InvalidSecretError) as error:
        check_secret(sender, None, value)

    assert value not in str(error.value)


@pytest.mark.parametrize(("encoding", "value"), [("base64", "a-b"), ("hex", "abc"), ("hex", "zz")])
def test_the_secret_of_hmac_has_its_encoding(encoding: str, value: str) -> None:
    options = HmacOptions("X-Signature", secret_encoding=encoding)
    assert check_secret("hmac", options, "abcd") == "abcd"

    with pytest.raises(InvalidSecretError):
        check_secret("hmac", options, value)


# --- Options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("header", ""),
        ("header", "X Signature"),
        ("header", "X-Signatur\u00eb"),
        ("algorithm", "md5"),
        ("algorithm", "SHA256"),
        ("encoding", "base32"),
        ("secret_encoding", "whsec"),
        ("prefix", "x" * 65),
        ("prefix", "é"),
        ("template", ""),
        ("template", "{timestamp}"),
        ("template", "{body}{body}"),
        ("template", "{body}{secret}"),
        ("template", "{body"),
        ("template", "{body}\n"),
        ("timestamp_header", "a:b"),
        ("id_header", ""),
    ],
)
def test_a_wrong_option_of_hmac_is_named(field: str, value: str) -> None:
    check_hmac(HmacOptions(header="X-Signature"))

    with pytest.raises(InvalidOptionError) as error:
        check_hmac(HmacOptions(**({"header": "X-Signature"} | {field: value})))

    assert error.value.field == field


@pytest.mark.parametrize(
    ("template", "field"),
    [("{timestamp}{body}", "timestamp_header"), ("{id}.{body}", "id_header")],
)
def test_what_a_template_signs_has_its_header(template: str, field: str) -> None:
    check_hmac(HmacOptions("X-Signature", template=template, **{field: "X-Other"}))

    with pytest.raises(InvalidOptionError) as error:
        check_hmac(HmacOptions("X-Signature", template=template))

    assert error.value.field == field


@pytest.mark.parametrize(
    "pointers", [("id",), ("",), ("/a~2",), ("/a\n",), ("/" + "a" * 200,), ("/a",) * 4]
)
def test_wrong_pointers_are_refused(pointers: tuple[str, ...]) -> None:
    check_pointers(("/a/0", "/b~1c", "/d~0"))

    with pytest.raises(InvalidOptionError) as error:
        check_pointers(pointers)

    assert error.value.field == "event_id_pointers"
