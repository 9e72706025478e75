"""Attacks on the worker: by a child that was taken over, and by the work of host calls and records.

A worker holds if it refuses or bounds an attack, within limits of CPU time and memory.
"""

import struct
import time
import tracemalloc
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from scripts_engine.attacks.hostile_child import hostile_child
from scripts_engine.host.call_summary import summaries_of
from scripts_engine.host.handler import RunHost
from scripts_engine.host.http import HttpCapability
from scripts_engine.redaction import Redactor
from scripts_engine.sandbox.contract import CallNote, HostCall, HostCallError, Job, OutcomeKind
from scripts_engine.sandbox.limits import MAX_MESSAGE_BYTES, Limits
from scripts_engine.sandbox.parent.conversation import Conversation, Request
from scripts_engine.sandbox.parent.endings import Ending
from scripts_engine.sandbox.parent.observer import KillReason
from scripts_engine.sandbox.protocol import HEADER, Tag, encode, pack

# Many times the need of a worker that holds, even on a slow machine.
MAX_CPU_SECONDS = 2.0
MAX_MEMORY_BYTES = 48 * 1024 * 1024

REFUSED = "refused"
BOUNDED = "bounded"

_LIMITS = Limits()
_REQUEST = Request.to_run(Job(source=b"return 1", chunk_name="attack", limits=_LIMITS))
_MANY = 1_000_000
_KILLED = {KillReason.PROTOCOL: REFUSED, KillReason.HOST_CALLS: BOUNDED}


@dataclass(frozen=True, slots=True)
class WorkerAttack:
    """An attack whose `attempt` returns its result, to be compared with `expected`."""

    name: str
    expected: str
    attempt: Callable[[], str]

    def run(self) -> str:
        """The result of the attack, with its cost if that was too high."""
        tracemalloc.start()
        started = time.process_time()
        try:
            result = self.attempt()
            cpu_seconds = time.process_time() - started
            memory_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        if cpu_seconds > MAX_CPU_SECONDS:
            return f"{result}, after {cpu_seconds:.1f} s of CPU time"
        if memory_bytes > MAX_MEMORY_BYTES:
            return f"{result}, with {memory_bytes // 1024**2} MiB of memory"
        return result


def worker_attacks() -> list[WorkerAttack]:
    """All attacks on the worker, sorted by name."""
    return sorted(_ATTACKS, key=lambda attack: attack.name)


def _attack(name: str, expected: str, attempt: Callable[[], str]) -> WorkerAttack:
    return WorkerAttack(name, expected, attempt)


def _heard(sent: bytes) -> tuple[Ending | str, list[HostCall]]:
    """The ending that the worker believes, or why it killed the child; and the calls it kept."""
    with hostile_child(sent) as child:
        conversation = Conversation(child, _REQUEST, None)
        ending = conversation.wait(lambda _pid: None)
        if ending.kill_reason is None:
            return ending, conversation.host_calls
        return _KILLED.get(ending.kill_reason, "waiting for more"), conversation.host_calls


def _said(sent: bytes) -> Callable[[], str]:
    """Make an attempt that sends these bytes; it fails if the worker believes them."""

    def attempt() -> str:
        heard, _ = _heard(sent)
        return heard if isinstance(heard, str) else f"believed: {heard.kind}"

    return attempt


def _done(*answer: object) -> bytes:
    return encode([Tag.DONE, 0.0, *answer])


def _call(name: bytes, packed_arguments: bytes) -> bytes:
    return encode([Tag.CALL, name, packed_arguments])


def _framed(payload: bytes) -> bytes:
    return HEADER.pack(len(payload)) + payload


def _empty_lists_as_arguments() -> str:
    lists = b"\xdd" + struct.pack(">I", 4 * _MANY) + b"\x90" * (4 * _MANY)
    heard, calls = _heard(_call(b"http.request", lists) + _done(OutcomeKind.OUT_OF_MEMORY))
    problem = calls[0].error if calls else str(heard)
    return REFUSED if problem and "more than 20,000 values" in problem else f"taken: {problem}"


def _calls_without_end() -> str:
    heard, calls = _heard(_call(b"store.get", pack([b"key"])) * 5 * _LIMITS.host_calls)
    if heard != BOUNDED or len(calls) > _LIMITS.host_calls:
        return f"{len(calls)} kept, {heard}"
    return BOUNDED


def _line_that_is_none() -> str:
    heard, _ = _heard(_done(OutcomeKind.FAILED, b"boom", 2**40, b""))
    line = heard.error.line if isinstance(heard, Ending) and heard.error else heard
    return REFUSED if line is None else f"believed: {line}"


def _endless_texts() -> str:
    heard, _ = _heard(_done(OutcomeKind.FAILED, b"x" * 500_000, 1, b"x" * 500_000))
    error = heard.error if isinstance(heard, Ending) else None
    if error is None or len(error.message) > MAX_MESSAGE_BYTES or len(error.traceback) > 100_000:
        return "kept"
    return BOUNDED


def _forbidden_header() -> str:
    heard, _ = _heard(_done(OutcomeKind.SUCCEEDED, 200, b"", b"Set-Cookie", b"a=b"))
    if isinstance(heard, Ending) and heard.reply and heard.reply.headers:
        return f"set: {heard.reply.headers}"
    return REFUSED


def _log_outside_of_time() -> str:
    record = struct.pack("<IIdBI", 13, 0, 1e300, 1, 0)
    with hostile_child(b"", log=record) as child:
        return f"believed: {child.log_area.lines()}" if child.log_area.lines() else REFUSED


def _many_headers() -> str:
    headers = {b"X-%d" % number: b"1" for number in range(9000)}
    options = {b"method": b"GET", b"url": b"http://192.0.2.1/", b"headers": headers}
    try:
        HttpCapability(uuid.uuid4()).request(options, deadline=time.monotonic() + 10)
    except HostCallError as error:
        return REFUSED if "headers" in str(error) else f"tried: {error}"
    return "sent"


def _other_method() -> str:
    """A child that was taken over calls http.get for a DELETE."""
    options = {b"method": b"DELETE", b"url": b"http://192.0.2.1/", b"headers": {}}
    deadline = time.monotonic() + 10
    try:
        RunHost(uuid.uuid4())("http.get", [options], deadline=deadline, note=CallNote())
    except HostCallError as error:
        return REFUSED if "wrong arguments" in str(error) else f"tried: {error}"
    return "sent"


def _disguised_secret() -> str:
    """A secret in a URL, percent-encoded or in another case."""
    calls = [
        HostCall("http.get", 0, 0, None, subject=b"GET https://%b.example/%b?q" % (host, path))
        for host, path in ((b"a", b"P%2561ss%2Fword"), (b"pass/WORD".replace(b"/", b"%2f"), b""))
    ]
    kept = list(summaries_of(calls, Redactor([b"Pass/word"]), 1000))
    return REFUSED if kept == ["GET [redacted]"] * 2 else f"kept: {kept}"


def _redaction_bomb() -> str:
    """Secrets that are part of the mark that replaces other secrets."""
    secrets = [b"[redacted]"[:length] for length in range(4, 11)] + [b"shown-secret"]
    shown = b"shown-secret-" * 700
    kept = Redactor(secrets).bytes(shown, len(shown))
    return BOUNDED if len(kept) <= len(shown) else f"{len(kept)} bytes kept of {len(shown)}"


def _overlapping_secrets() -> str:
    kept = Redactor([b"first-and", b"and-second"]).bytes(b"<first-and-second>", 100)
    return REFUSED if kept == b"<[redacted]>" else f"kept: {kept!r}"


_ATTACKS = [
    _attack(
        "child_answer_of_empty_lists",
        REFUSED,
        _said(_framed(b"\xdd" + struct.pack(">I", _MANY) + b"\x90" * _MANY)),
    ),
    _attack(
        "child_answer_of_nested_lists",
        REFUSED,
        _said(_framed(b"\x93\x08\xcb" + b"\0" * 8 + b"\xdc\xff\xff" * 300_000)),
    ),
    _attack("child_arguments_of_empty_lists", REFUSED, _empty_lists_as_arguments),
    _attack("child_calls_without_end", BOUNDED, _calls_without_end),
    _attack("child_calls_an_endless_name", REFUSED, _said(_call(b"x" * 4 * _MANY, pack([b"key"])))),
    _attack("child_calls_an_unknown_name", REFUSED, _said(_call(b"os.execute", pack([b"id"])))),
    _attack("child_cpu_time_is_no_number", REFUSED, _said(encode([Tag.DONE, float("nan")]))),
    _attack(
        "child_answers_twice",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 200, b"") + _done(OutcomeKind.SUCCEEDED, 200, b"")),
    ),
    _attack(
        "child_cpu_time_is_made_up",
        REFUSED,
        _said(encode([Tag.DONE, 1e8, OutcomeKind.SUCCEEDED, 200, b""])),
    ),
    _attack("child_cpu_time_is_negative", REFUSED, _said(encode([Tag.DONE, -1.0]))),
    _attack("child_error_has_endless_texts", BOUNDED, _endless_texts),
    _attack("child_error_has_no_line_of_the_source", REFUSED, _line_that_is_none),
    _attack(
        "child_error_has_true_for_a_line",
        REFUSED,
        _said(_done(OutcomeKind.FAILED, b"boom", True, b"")),
    ),
    _attack("child_is_ready_again", REFUSED, _said(encode([Tag.READY]))),
    _attack("child_is_ready_at_length", REFUSED, _said(encode([Tag.READY, b"x" * 8 * _MANY]))),
    _attack("child_log_is_outside_of_time", REFUSED, _log_outside_of_time),
    _attack(
        "child_reply_has_a_body_against_its_status",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 204, b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n")),
    ),
    _attack(
        "child_reply_has_true_for_a_status",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, True, b"")),
    ),
    _attack("child_reply_sets_a_cookie", REFUSED, _forbidden_header),
    _attack(
        "child_reply_splits_a_header",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 200, b"", b"X", b"1\r\nSet-Cookie: a=b")),
    ),
    _attack(
        "child_retry_is_after_no_number",
        REFUSED,
        _said(_done(b"retry", b"later", float("nan"))),
    ),
    _attack("http_headers_by_the_thousand", REFUSED, _many_headers),
    _attack("http_get_with_another_method", REFUSED, _other_method),
    _attack("record_of_a_disguised_secret", REFUSED, _disguised_secret),
    _attack("record_of_a_redaction_bomb", BOUNDED, _redaction_bomb),
    _attack("record_of_overlapping_secrets", REFUSED, _overlapping_secrets),
]
