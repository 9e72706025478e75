import logging

import pytest

from accounts.credentials import SecretKind, generate_secret
from config.http.redaction import RedactSecrets, redact


@pytest.mark.parametrize("kind", SecretKind)
def test_every_kind_of_secret_is_taken_out(kind: SecretKind) -> None:
    secret = generate_secret(kind)

    assert redact(f"before {secret} after") == f"before {kind}[redacted] after"


def test_a_public_key_id_stays() -> None:
    assert redact("mhk_abcdefABCDEF") == "mhk_abcdefABCDEF"


@pytest.mark.parametrize("token", ["mhc_mistyped", "anything", "%6dhc_x"])
def test_whatever_stands_in_the_tokens_place_is_taken_out(token: str) -> None:
    line = f'"POST /hook/ORG/SCRIPT/{token}?a=1 HTTP/1.1" 404'

    assert redact(line) == '"POST /hook/ORG/SCRIPT/[redacted]?a=1 HTTP/1.1" 404'


@pytest.mark.parametrize(
    "path",
    [
        "/hook/ORG/SCRIPT%2fmhc_secret",
        "/%68ook/ORG/SCRIPT/%6dhc_secret",
        "/hook//ORG/SCRIPT//mhc%5fsecret",
        "/HOOK/ORG/SCRIPT/mhc_secret",
        "/hook/ORG/SCRIPT/a/mhc_secret",
    ],
)
def test_encodings_hide_no_token(path: str) -> None:
    redacted = redact(f'"GET {path} HTTP/1.1" 200')

    assert "secret" not in redacted
    assert "ORG" in redacted


def test_an_encoded_line_break_makes_no_second_line() -> None:
    assert "\n" not in redact("/hook/ORG/SCRIPT/%0a%6dhc_secret")


def test_the_secure_address_has_nothing_to_take_out() -> None:
    assert redact("POST /hook/secure/ORG/SCRIPT") == "POST /hook/secure/ORG/SCRIPT"


def test_arguments_and_tracebacks_of_records_are_redacted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = generate_secret(SecretKind.SESSION)
    try:
        raise ValueError(secret)
    except ValueError as error:
        exc_info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "x.py", 1, "got %s", (secret,), exc_info)
    RedactSecrets().filter(record)

    text = logging.Formatter().format(record)
    assert "ValueError" in text
    assert secret not in text
