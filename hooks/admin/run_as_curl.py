"""The request of a recorded call, as a curl command that makes it again."""

import base64
import re
import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from core.admin.issuing import curl
from core.http.redaction import REDACTED, holds_secret, redact
from hooks.models import Hook
from hooks.senders import credential_headers
from scripts_engine.models import Run

# Of each body in a command. Shells have no limit for these, but terminals do.
MAX_BODY_BYTES = 64 * 1024
NOT_KEPT = "<not kept>"
BODY_FILE = "request-body"
# curl sends its own.
_OF_THE_CONNECTION = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "transfer-encoding"}
)
_GLOB = re.compile(r"[\[\]{}]")
# A terminal acts on these, even in the middle of a quoted word.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def as_curl(run: Run, hook: Hook, body: bytes | None) -> str:
    """Returns the command, with placeholders for the call token and for what is not recorded.

    ``body`` is ``None`` if it is not kept any more.
    """
    has_body = body is None or body != b""
    usual = "POST" if has_body else "GET"
    method = () if run.request_method == usual else (("-X", run.request_method),)
    before, options = _body_options(body) if has_body else ("", ())
    headers = [("-H", header) for header in _headers(run.request_headers, has_body)]
    address = _address(run, hook)
    # The caller chose the query: brackets and braces would make curl send many requests.
    as_it_is = (("--globoff",),) if _GLOB.search(address) else ()
    return before + curl(address, *as_it_is, *method, *headers, *options)


def _address(run: Run, hook: Hook) -> str:
    query = f"?{_without_secrets(run.request_query)}" if run.request_query else ""
    return f"{hook.url}{quote(run.request_path)}{query}"


def _headers(recorded: Sequence[Sequence[str]], has_body: bool) -> Iterator[str]:
    names = {name.lower() for name, _ in recorded}
    for name, value in recorded:
        if name.lower() in _OF_THE_CONNECTION:
            continue
        if value == REDACTED or name.lower() in credential_headers() or holds_secret(value):
            yield f"{name}: {NOT_KEPT}"
        else:
            # Only with a semicolon does curl send a header without a value.
            yield _CONTROL.sub("?", f"{name}: {value}") if value else f"{name};"
    if has_body and "content-type" not in names:
        # Keeps curl from adding one.
        yield "Content-Type:"


def _body_options(body: bytes | None) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What comes before the command, and its options for the body."""
    of_file = ("--data-binary", f"@{BODY_FILE}")
    if body is None or len(body) > MAX_BODY_BYTES:
        return "", (of_file,)
    text = _plain_text(body)
    if text is not None:
        return "", (("--data-raw", _without_secrets(text)),)
    if holds_secret(body.decode("latin-1")):
        return "", (of_file,)
    encoded = shlex.quote(base64.b64encode(body).decode())
    return f"printf %s {encoded} | base64 -d | ", (("--data-binary", "@-"),)


def _plain_text(body: bytes) -> str | None:
    """The text, if a terminal and a shell leave it as it is."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def _without_secrets(text: str) -> str:
    return redact(text) if holds_secret(text) else text
