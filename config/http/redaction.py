"""Secrets never reach a log: they are recognised by their prefixes and by where they stand."""

import logging
import re

REDACTED = "[redacted]"

# Secrets carry their kind in front; the last 46 characters are the secret itself. A hook's token
# is also redacted by its place in the path, so that a mistyped one does not show either.
_SECRET = re.compile(r"\bmh([sthxc])_[0-9A-Za-z]+")
_HOOK_TOKEN = re.compile(r"(/hook/(?!secure/)[^/\s]+/[^/\s]+/)[^/\s?\"']+")


def redact(text: str) -> str:
    text = _HOOK_TOKEN.sub(rf"\g<1>{REDACTED}", text)
    return _SECRET.sub(rf"mh\g<1>_{REDACTED}", text)


class RedactSecrets(logging.Filter):
    """Redacts a record's message, and its traceback, before any formatter sees it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
        return True
