"""Secrets never reach a log: they are recognised by their prefixes and by where they stand."""

import logging
import re
from urllib.parse import unquote

REDACTED = "[redacted]"

# Secrets carry their kind in front. A hook's token is also redacted by its place in the path, so
# that a mistyped one does not show either.
_SECRET = re.compile(r"mh([sthxc])_[0-9A-Za-z]+")
_HOOK_TOKEN = re.compile(r"(/+hook/+(?!secure/)[^/\s]+/+[^/\s]+/+)[^\s?\"']+", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def redact(text: str) -> str:
    """The text without secrets, those written in percent-encoding too."""
    cleaned = _redact(text)
    if "%" in text and (decoded := unquote(text)) != _redact(decoded):
        # Shown decoded, because only so can it be shown without the secret.
        return _CONTROL.sub("?", _redact(decoded))
    return cleaned


def holds_secret(text: str) -> bool:
    return _SECRET.search(text) is not None


def _redact(text: str) -> str:
    text = _HOOK_TOKEN.sub(rf"\g<1>{REDACTED}", text)
    return _SECRET.sub(rf"mh\g<1>_{REDACTED}", text)


class RedactSecrets(logging.Filter):
    """Redacts a record's message, and its traceback, before any formatter sees it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True
