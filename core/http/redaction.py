"""Secrets never reach a log: they are recognised by their prefixes and by where they stand."""

import re
from urllib.parse import unquote

REDACTED = "[redacted]"

# Secrets carry their kind in front. A hook's token is also redacted by its place in the path, so
# that a mistyped one does not show either.
_SECRET = re.compile(r"mh([sthxc])_[0-9A-Za-z]+")
# Begins at the first of several slashes only: from each of them is quadratic.
_HOOK_TOKEN = re.compile(r"((?<!/)/+hook/+(?!secure/)[^/\s]+/+[^/\s]+/+)[^\s?\"']+", re.IGNORECASE)
# Those of others: passwords in addresses (of a database, a mail server), Authorization headers.
_URL_PASSWORD = re.compile(r"(://[^\s/:@]*:)[^\s/@]+@")
_AUTHORIZATION = re.compile(r"\b(basic|bearer|digest) +[\w+/=.~-]{16,}", re.IGNORECASE)
# Text without any of these holds nothing to take out; ids and most names are without.
_SUSPECT = re.compile(r"[/%_\s]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def redact(text: str) -> str:
    """The text without secrets, those written in percent-encoding too."""
    if _SUSPECT.search(text) is None:
        return text
    cleaned = _redact(text)
    if "%" in text and (decoded := unquote(text)) != _redact(decoded):
        # Shown decoded, because only so can it be shown without the secret.
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
