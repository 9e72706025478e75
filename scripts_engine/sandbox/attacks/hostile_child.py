"""Attacks on the worker by a child that was taken over: it sends any bytes that it likes.

A worker holds if it refuses or bounds an attack, within limits of CPU time and memory.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from scripts_engine.sandbox.contract import HostCall, Job, Libraries, Library, OutcomeKind
from scripts_engine.sandbox.limits import MAX_MESSAGE_BYTES, Limits
from scripts_engine.sandbox.parent.child_frames import Ending
from scripts_engine.sandbox.parent.child_process import ChildProcess
from scripts_engine.sandbox.parent.conversation import Conversation, Request
from scripts_engine.sandbox.parent.waiting import KillReason
from scripts_engine.sandbox.protocol import HEADER, Tag, create_area_file, encode, pack

# Many times the need of a worker that holds, even on a slow machine.
MAX_CPU_SECONDS = 2.0
MAX_MEMORY_BYTES = 48 * 1024 * 1024

REFUSED = "refused"
BOUNDED = "bounded"

_LIMITS = Limits()
_LIBRARIES = Libraries(by_key={b"key": Library("library", b"return 1")})
_REQUEST = Request.to_run(
    Job(source=b"return 1", chunk_name="attack", limits=_LIMITS, libraries=_LIBRARIES)
)
_MANY = 1_000_000
_KILLED = {KillReason.PROTOCOL: REFUSED, KillReason.HOST_CALLS: BOUNDED}
# The child only needs a process; this module sends its messages.
_WAIT_FOR_THE_END = "import sys; sys.stdin.read()"


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


def child_attacks() -> list[WorkerAttack]:
    """The attacks of a child, sorted by name."""
    return sorted(_ATTACKS, key=lambda attack: attack.name)


@contextmanager
def hostile_child(sent: bytes, log: bytes = b"") -> Iterator[ChildProcess]:
    """A child that sends these bytes, has written `log` to its log, and reads all that it gets."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(  # noqa: S603 (no part comes from outside)
        [sys.executable, "-I", "-S", "-c", _WAIT_FOR_THE_END], stdin=subprocess.PIPE
    )
    log_file = create_area_file()
    os.pwrite(log_file, log, 0)
    child = ChildProcess(process.pid, ours, os.pidfd_open(process.pid), log_file)
    threads = [
        threading.Thread(target=_send, args=[theirs, sent]),
        threading.Thread(target=_read_all, args=[theirs]),
    ]
    for thread in threads:
        thread.start()
    try:
        yield child
    finally:
        child.end()
        for thread in threads:
            thread.join()
        theirs.close()
        process.communicate()


def _send(channel: socket.socket, sent: bytes) -> None:
    # The worker closes the socket as soon as it refuses the child.
    with suppress(OSError):
        channel.sendall(sent)


def _read_all(channel: socket.socket) -> None:
    with suppress(OSError):
        while channel.recv(1 << 16):
            pass


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


_ATTACKS = [
    WorkerAttack(
        "child_answer_of_empty_lists",
        REFUSED,
        _said(_framed(b"\xdd" + struct.pack(">I", _MANY) + b"\x90" * _MANY)),
    ),
    WorkerAttack(
        "child_answer_of_nested_lists",
        REFUSED,
        _said(_framed(b"\x93\x08\xcb" + b"\0" * 8 + b"\xdc\xff\xff" * 300_000)),
    ),
    WorkerAttack("child_arguments_of_empty_lists", REFUSED, _empty_lists_as_arguments),
    WorkerAttack("child_calls_without_end", BOUNDED, _calls_without_end),
    WorkerAttack(
        "child_calls_an_endless_name", REFUSED, _said(_call(b"x" * 4 * _MANY, pack([b"key"])))
    ),
    WorkerAttack(
        "child_calls_an_unknown_name", REFUSED, _said(_call(b"os.execute", pack([b"id"])))
    ),
    WorkerAttack("child_cpu_time_is_no_number", REFUSED, _said(encode([Tag.DONE, float("nan")]))),
    WorkerAttack(
        "child_answers_twice",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 200, b"") + _done(OutcomeKind.SUCCEEDED, 200, b"")),
    ),
    WorkerAttack(
        "child_cpu_time_is_made_up",
        REFUSED,
        _said(encode([Tag.DONE, 1e8, OutcomeKind.SUCCEEDED, 200, b""])),
    ),
    WorkerAttack("child_cpu_time_is_negative", REFUSED, _said(encode([Tag.DONE, -1.0]))),
    WorkerAttack("child_error_has_endless_texts", BOUNDED, _endless_texts),
    WorkerAttack("child_error_has_no_line_of_the_source", REFUSED, _line_that_is_none),
    WorkerAttack(
        "child_error_has_true_for_a_line",
        REFUSED,
        _said(_done(OutcomeKind.FAILED, b"boom", True, b"")),
    ),
    WorkerAttack("child_is_ready_again", REFUSED, _said(encode([Tag.READY]))),
    WorkerAttack("child_is_ready_at_length", REFUSED, _said(encode([Tag.READY, b"x" * 8 * _MANY]))),
    WorkerAttack("child_log_is_outside_of_time", REFUSED, _log_outside_of_time),
    WorkerAttack(
        "child_needs_a_library_of_another_script", REFUSED, _said(encode([Tag.NEED, b"other"]))
    ),
    WorkerAttack(
        "child_needs_a_library_again_and_again", REFUSED, _said(encode([Tag.NEED, b"key"]) * _MANY)
    ),
    WorkerAttack(
        "child_needs_a_library_by_an_endless_key",
        REFUSED,
        _said(encode([Tag.NEED, b"x" * 8 * _MANY])),
    ),
    WorkerAttack("child_needs_a_number", REFUSED, _said(encode([Tag.NEED, 7]))),
    WorkerAttack(
        "child_reply_has_a_body_against_its_status",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 204, b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n")),
    ),
    WorkerAttack(
        "child_reply_has_true_for_a_status",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, True, b"")),
    ),
    WorkerAttack("child_reply_sets_a_cookie", REFUSED, _forbidden_header),
    WorkerAttack(
        "child_reply_splits_a_header",
        REFUSED,
        _said(_done(OutcomeKind.SUCCEEDED, 200, b"", b"X", b"1\r\nSet-Cookie: a=b")),
    ),
    WorkerAttack(
        "child_retry_is_after_no_number",
        REFUSED,
        _said(_done(b"retry", b"later", float("nan"))),
    ),
]
