"""Removes secrets from what is shown or logged."""

import re

# The prefixes of Moonhook's own secrets, and the path of a hook's URL after its script.
_PATTERNS = (
    re.compile(r"mh[sthxc]_[0-9A-Za-z]+"),
    re.compile(r"whsec_[0-9A-Za-z+/=]+"),
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"(?<=\"device_code\": \")[^\"]+|(?<=\"device_code\":\")[^\"]+"),
)
HIDDEN = "[hidden]"
_known: set[str] = set()


def hide(secret: str) -> None:
    """From now on, this value is removed too, whatever its form."""
    if len(secret) > 3:
        _known.add(secret)


def redacted(text: str) -> str:
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for pattern in _PATTERNS:
        text = pattern.sub(HIDDEN, text)
    return text
