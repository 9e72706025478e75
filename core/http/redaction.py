"""Redaction of secrets in logs, recognised by prefix or by position."""

import re
from urllib.parse import unquote

REDACTED = "[redacted]"

# Our secrets start with their kind.
_SECRET = re.compile(r"mh([sthxcl])_[0-9A-Za-z]+")
# Secrets of other services: passwords in URLs (database, mail server), Authorization headers.
_URL_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/@]+@")
_AUTHORIZATION = re.compile(r"\b(basic|bearer|digest) +[\w+/=.~-]{16,}", re.IGNORECASE)
# Text without any of these characters needs no redaction; ids and most names have none.
_SUSPECT = re.compile(r"[/%_\s]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_positions: list[re.Pattern[str]] = []


def register_secret_position(pattern: re.Pattern[str]) -> None:
    """Registers where a secret stands in a path, so that a mistyped one is redacted too.

    The pattern matches what precedes the secret, as its first group, and the secret.
    """
    _positions.append(pattern)


def redact(text: str) -> str:
    """Remove secrets from the text, percent-encoded ones too."""
    if _SUSPECT.search(text) is None:
        return text
    cleaned = _redact(text)
    if "%" in text and (decoded := unquote(text)) != _redact(decoded):
        # Redacted text stays decoded, because the secret is only found in that form.
        return _CONTROL.sub("?", _redact(decoded))
    return cleaned


def holds_secret(text: str) -> bool:
    return _SECRET.search(text) is not None


def _redact(text: str) -> str:
    for position in _positions:
        text = position.sub(_without_secret, text)
    if "mh" in text:
        text = _SECRET.sub(rf"mh\g<1>_{REDACTED}", text)
    if "://" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{REDACTED}@", text)
    if " " in text:
        text = _AUTHORIZATION.sub(rf"\g<1> {REDACTED}", text)
    return text


def _without_secret(path: re.Match[str]) -> str:
    return f"{path[1]}{REDACTED}"
