"""The headers of a recorded call that programs read: an allow-list, as others may be credentials.

A record hides the credentials that are known as such. Programs repeat a call elsewhere, so they get
less: names that describe content and caller, those of known senders, and ``X-`` and ``Ce-`` names
that do not look like a credential's.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from django.core.exceptions import ValidationError

from core.http.redaction import REDACTED, holds_secret
from scripts_engine.models import Run
from scripts_engine.runs.spec import MAX_HEADERS, clean_header

MAX_VALUES_BYTES = 64 * 1024

_OF_CONTENT_AND_CALLER = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "content-digest",
        "content-disposition",
        "content-encoding",
        "content-language",
        "content-type",
        "date",
        "digest",
        "origin",
        "prefer",
        "traceparent",
        "tracestate",
        "user-agent",
    }
)
_FREE_PREFIXES = ("x-", "ce-")
_CREDENTIAL = re.compile(r"auth|cookie|credential|csrf|jwt|key|passw|pwd|secret|session|token|xsrf")
_of_senders: set[str] = set()


class ShownHeader(NamedTuple):
    """``value`` is ``None`` if it is hidden."""

    name: str
    value: str | None


def register_sender_headers(names: Iterable[str]) -> None:
    """Registers, in lower case, what known senders send that is no credential, at start."""
    _of_senders.update(names)


def shown_headers(run: Run) -> list[ShownHeader]:
    """The names of the call's headers with the values that programs may read; at most 100.

    ``runScript`` takes each header that has a value.
    """
    left = MAX_VALUES_BYTES
    shown = []
    for name, recorded in run.request_headers[:MAX_HEADERS]:
        value = _value_of(name, recorded)
        if value is not None:
            left -= len(value)
        shown.append(ShownHeader(name, value if left >= 0 else None))
    return shown


def _value_of(name: str, recorded: str) -> str | None:
    if recorded == REDACTED or not _is_allowed(name.lower()) or holds_secret(recorded):
        return None
    try:
        return clean_header(name, recorded)[1]
    except ValidationError:
        return None


def _is_allowed(name: str) -> bool:
    if name in _OF_CONTENT_AND_CALLER or name in _of_senders:
        return True
    return name.startswith(_FREE_PREFIXES) and _CREDENTIAL.search(name) is None
