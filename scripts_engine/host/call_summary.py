"""Summaries of host calls for the timeline: ``GET api.example.com/stock → 500``."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from core.http.redaction import REDACTED
from scripts_engine.host.http import METHOD_OF, method_of, shown_request
from scripts_engine.host.queue import MAX_SCRIPT_BYTES
from scripts_engine.host.secrets import MAX_NAME_BYTES
from scripts_engine.redaction import Redactor
from scripts_engine.sandbox.contract import HostCall
from scripts_engine.stored_values import MAX_KEY_BYTES

MAX_SUBJECT_CHARS = 160
MAX_RESULT_CHARS = 60
# Enough for any subject after redaction, which may lengthen it.
_MAX_REDACTED_BYTES = 64 * 1024

# Of the functions whose subject is not a key of the store.
_MAX_SUBJECT_BYTES = {"queue.push": MAX_SCRIPT_BYTES, "secrets.get": MAX_NAME_BYTES}

_SCHEME = re.compile(r"(?i)^https?://")
_QUERY_OR_FRAGMENT = re.compile(r"[?#].*", re.DOTALL)


def subject_of(name: str, args: list[Any]) -> bytes:
    """What the call is about: method and URL, a key, or a script. The arguments are untrusted."""
    first = args[0]
    if name in METHOD_OF or name == "http.request":
        method = METHOD_OF.get(name) or method_of(first)
        url = first.get(b"url") if isinstance(first, dict) else None
        return shown_request(method, url) if method else b""
    max_bytes = _MAX_SUBJECT_BYTES.get(name, MAX_KEY_BYTES)
    return first if isinstance(first, bytes) and len(first) <= max_bytes else b""


def result_of(name: str, args: list[Any], answer: Any) -> str:
    """How a call ended that did not fail. Never the size or the value of a secret."""
    describe = _RESULTS.get(name)
    return "" if describe is None else describe(args, answer)


def summaries_of(calls: Iterable[HostCall], redactor: Redactor, max_chars: int) -> Iterator[str]:
    """Yields each call's summary, ``max_chars`` in total; then the names of the functions."""
    left = max_chars
    for call in calls:
        summary = _summary_of(call, redactor)
        left -= len(summary)
        yield summary if left >= 0 else call.name


def _summary_of(call: HostCall, redactor: Redactor) -> str:
    """Redacts before anything is left out or cut, because a part of a secret is not recognised."""
    subject = redactor.bytes(call.subject, _MAX_REDACTED_BYTES)
    is_request = call.name.startswith("http.")
    if redactor.is_disguised_in(subject):
        subject = (subject.split(b" ")[0] + b" " if is_request else b"") + REDACTED.encode()
    text = subject.decode("utf-8", "backslashreplace")
    if is_request:
        summary = _cut(_printable(_without_query(text))) or call.name
    else:
        summary = f"{call.name} {_cut(_printable(text))}".rstrip()
    result = redactor.text(call.result, MAX_RESULT_CHARS)
    return f"{summary} → {result}" if result else summary


def _without_query(request: str) -> str:
    """Leaves out the scheme, the query string (often credentials) and the fragment."""
    method, _, url = request.partition(" ")
    shown = _QUERY_OR_FRAGMENT.sub("", _SCHEME.sub("", url))
    has_query = "?" in url.partition("#")[0]
    return f"{method} {shown}{'?…' if has_query else ''}".rstrip()


def _printable(text: str) -> str:
    """Escapes control characters and others that are invisible or change the direction."""
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUBJECT_CHARS else f"{text[: MAX_SUBJECT_CHARS - 1]}…"


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


_RESULTS: dict[str, Callable[[list[Any], Any], str]] = {
    **dict.fromkeys(("http.request", *METHOD_OF), lambda _, response: str(response[b"status"])),
    "queue.push": lambda _, pushed: (
        f"run {pushed[0].decode()}{'' if pushed[1] else ', queued before'}"
    ),
    "store.get": lambda _, text: "not set" if text is None else _counted(len(text), "byte"),
    "store.set": lambda args, _: f"stored {_counted(len(args[1]), 'byte')}",
    "store.set_if_absent": lambda args, was_set: (
        f"stored {_counted(len(args[1]), 'byte')}" if was_set else "already set"
    ),
    "store.increment": lambda _, number: str(number),
    "store.list": lambda _, keys: _counted(len(keys), "key"),
    "secrets.get": lambda _, secret: "not set" if secret is None else "",
}
