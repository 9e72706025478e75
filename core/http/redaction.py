"""Redaction of secrets in logs, recognised by prefix or by position."""

import re
from urllib.parse import unquote

REDACTED = "[redacted]"

# Our secrets start with their kind. Hook tokens are also redacted by their position in the path, so
# that mistyped ones are hidden too.
_SECRET = re.compile(r"mh([sthxcl])_[0-9A-Za-z]+")
# Matches from the first of several slashes only, because a match from each is quadratic.
_HOOK_TOKEN = re.compile(r"((?<!/)/+hook/+(?!secure/)[^/\s]+/+[^/\s]+/+)[^\s?\"']+", re.IGNORECASE)
# Secrets of other services: passwords in URLs (database, mail server), Authorization headers.
_URL_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/@]+@")
_AUTHORIZATION = re.compile(r"\b(basic|bearer|digest) +[\w+/=.~-]{16,}", re.IGNORECASE)
# Text without any of these characters needs no redaction; ids and most names have none.
_SUSPECT = re.compile(r"[/%_\s]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


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
    text = _HOOK_TOKEN.sub(_without_token, text)
    if "mh" in text:
        text = _SECRET.sub(rf"mh\g<1>_{REDACTED}", text)
    if "://" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{REDACTED}@", text)
    if " " in text:
        text = _AUTHORIZATION.sub(rf"\g<1> {REDACTED}", text)
    return text


def _without_token(path: re.Match[str]) -> str:
    return f"{path[1]}{REDACTED}"
