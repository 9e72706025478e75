"""A child that was taken over can end its own run, and do no more to the worker."""

from __future__ import annotations

import os
import signal
import socket
import struct
import time

import msgpack
import pytest

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.contract import HostCallError, Job, OutcomeKind
from scripts_engine.sandbox.limits import (
    MAX_FRAME_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_TRACEBACK_BYTES,
    Limits,
)
from scripts_engine.sandbox.parent import child_frames
from scripts_engine.sandbox.parent.child_process import ChildProcess, DeadlinePassed
from scripts_engine.sandbox.parent.conversation import (
    Conversation,
    Request,
    ending_from_exit_status,
)
from scripts_engine.sandbox.parent.waiting import KillReason
from scripts_engine.sandbox.protocol import ProtocolError, Tag, create_area_file


def ending_of_run(child, limits=Limits()):  # noqa: B008 (frozen)
    """Run a script in the child, whose exit status is unknown, and return the ending."""
    request = Request.to_run(Job(source=b"return 1", chunk_name="demo", limits=limits))
    return Conversation(child, request, None).wait(lambda _pid: None)


@pytest.fixture
def child_and_socket():
    """A child process, and the end of its socket from which the test speaks for it."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        theirs.recv(1)
        os._exit(0)
    child = ChildProcess(pid, ours, os.pidfd_open(pid), create_area_file())
    yield child, theirs
    theirs.close()
    child.end()
    os.waitpid(pid, 0)


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        struct.pack(">I", MAX_FRAME_BYTES + 1),
        protocol.HEADER.pack(1) + b"\xc1",
        protocol.HEADER.pack(5) + b"\x92" * 5,
        protocol.HEADER.pack(1) + b"\x01",
        protocol.HEADER.pack(1) + b"\x90",
        protocol.HEADER.pack(200) + b"\x91" * 200,
        protocol.HEADER.pack(5) + b"\xdd\xff\xff\xff\xff",
        protocol.encode(["what"]),
        protocol.encode([Tag.READY]),
        protocol.encode([Tag.RUN, b"return 1"]),
        protocol.encode([Tag.DONE]),
        protocol.encode([Tag.DONE, b"x"]),
        protocol.encode([Tag.DONE, float("nan")]),
        protocol.encode([Tag.DONE, float("inf")]),
        protocol.encode([Tag.CALL]),
        protocol.encode([Tag.CALL, b"a", b"b", b"c"]),
        protocol.encode([Tag.CALL, 1, 2]),
        protocol.encode([Tag.CALL, b"http.request", b"\xc1"]),
        protocol.encode([Tag.CALL, b"http.request", b"\x01"]),
        protocol.encode([Tag.CALL, b"os.execute", protocol.pack([])]),
        protocol.encode([Tag.CALL, [b"http.request"], protocol.pack([])]),
        protocol.encode([Tag.CALL, b"x" * 4_000, protocol.pack([])]),
        protocol.encode([Tag.READY, 1]),
        protocol.encode([Tag.REFUSED]),
        protocol.encode([Tag.DONE, True, b"succeeded", 200, b""]),
        protocol.encode([Tag.DONE, -1.0, b"succeeded", 200, b""]),
        protocol.encode([Tag.DONE, 1, b"succeeded", 200, b""]),
        protocol.encode([Tag.DONE, 0.0, {b"key": 1}]),
        protocol.encode([Tag.DONE, 1e9, b"succeeded", 200, b""]),
        protocol.encode([Tag.DONE, 60.0, b"succeeded", 200, b""]),
        protocol.encode([Tag.DONE, 0.0, b"succeeded", 200, b""]) * 2,
        protocol.encode([Tag.DONE, 0.0, b"succeeded", 200, b""]) + b"\0",
        protocol.encode([Tag.DONE, 0.0, msgpack.ExtType(1, b"x")]),
        protocol.HEADER.pack(1024 * 1024) + b"\x91" + bytes([Tag.READY, 0, 0]),
        protocol.HEADER.pack(1024 * 1024) + b"\x92" + bytes([Tag.REFUSED, 0, 0]),
        protocol.HEADER.pack(2 * 1024 * 1024) + b"\x92" + bytes([Tag.DONE, 0, 0]),
    ],
)
def test_an_invalid_frame_is_a_protocol_error(child_and_socket, sent):
    child, theirs = child_and_socket
    theirs.sendall(sent)
    ending = ending_of_run(child)
    assert (ending.kind, ending.kill_reason) == (OutcomeKind.FAILED, KillReason.PROTOCOL)


def test_the_reported_cpu_time_may_exceed_the_kernels_by_a_tick(child_and_socket):
    child, theirs = child_and_socket
    used = time.clock_gettime((~child.pid << 3) | 2)
    theirs.sendall(protocol.encode([Tag.DONE, used + 0.005, b"succeeded", 200, b""]))
    ending = ending_of_run(child)
    assert (ending.kind, ending.kill_reason) == (OutcomeKind.SUCCEEDED, None)


def test_more_cpu_time_than_the_kernel_counts_is_refused(child_and_socket):
    child, theirs = child_and_socket
    used = time.clock_gettime((~child.pid << 3) | 2)
    theirs.sendall(protocol.encode([Tag.DONE, used + 0.5, b"succeeded", 200, b""]))
    ending = ending_of_run(child)
    assert ending.kill_reason == KillReason.PROTOCOL
    assert "CPU time" in ending.error.message


def test_silence_ends_at_the_deadline(child_and_socket):
    child, _ = child_and_socket
    ending = ending_of_run(child, Limits(wall_seconds=0.05))
    assert (ending.kind, ending.kill_reason) == (OutcomeKind.TIMED_OUT, KillReason.WALL_TIME)


def test_half_a_frame_ends_at_the_deadline(child_and_socket):
    child, theirs = child_and_socket
    theirs.sendall(protocol.HEADER.pack(100) + b"x")
    ending = ending_of_run(child, Limits(wall_seconds=0.05))
    assert (ending.kind, ending.kill_reason) == (OutcomeKind.TIMED_OUT, KillReason.WALL_TIME)


def test_a_child_that_does_not_read_ends_at_the_deadline(child_and_socket):
    child, _ = child_and_socket
    with pytest.raises(DeadlinePassed):
        child.send(b"x" * 5_000_000, time.monotonic() + 0.05)


def test_a_child_that_closes_its_socket_counts_as_dead(child_and_socket):
    child, theirs = child_and_socket
    theirs.shutdown(socket.SHUT_RDWR)
    ending = ending_of_run(child)
    assert (ending.kind, ending.kill_reason) == (OutcomeKind.FAILED, KillReason.CRASHED)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        [b"won"],
        [1],
        [b"failed"],
        [b"failed", b"message"],
        [b"failed", b"message", b"line", b""],
        [b"failed", 1, 1, b""],
        [b"failed", b"message", True, b""],
        [b"failed", b"message", 1.0, b""],
        [b"failed", b"message", 1, None],
        [b"failed", b"message", 1, b"", b""],
        [b"out-of-memory", b"or not"],
        [b"reply-too-large"],
        [b"reply-too-large", b"or not"],
        [b"reply-too-large", 1024 * 1024],
        [b"reply-too-large", 2**40],
        [b"reply-too-large", 1.5e6],
        [b"reply-too-large", 2_000_000, 1],
        [b"retry"],
        [b"retry", b"reason"],
        [b"retry", b"reason", 1, 1],
        [b"retry", None, 1],
        [b"retry", b"reason", b"1"],
        [b"retry", b"reason", True],
        [b"retry", b"reason", -1],
        [b"retry", b"reason", 86_400.5],
        [b"retry", b"reason", 2**63],
        [b"retry", b"reason", float("nan")],
        [b"retry", b"reason", float("inf")],
        [b"fail"],
        [b"fail", 1],
        [b"fail", b"reason", 1],
        [[b"failed"], b"message", 1, b""],
        [{}],
        [b"succeeded"],
        [b"succeeded", 200],
        [b"succeeded", 200, "text"],
        [b"succeeded", 99, b""],
        [b"succeeded", True, b""],
        [b"succeeded", 204, b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n"],
        [b"succeeded", 205, b"x"],
        [b"succeeded", 304, b"x"],
        [b"succeeded", 200, b"", b"X"],
        [b"succeeded", 200, b"", b"X", 1],
        [b"succeeded", 200, b"", b"X", b"a\r\nb"],
        [b"succeeded", 200, b"", b"X\n", b"a"],
        [b"succeeded", 200, b"", b"X", b"a\0b"],
        [b"succeeded", 200, b"", b"X", b"a\x7fb"],
        [b"succeeded", 200, b"", b"", b"a"],
        [b"succeeded", 200, b"", b":status", b"200"],
        [b"succeeded", 200, b"", b"X:", b"a"],
        [b"succeeded", 200, b"", b"X ", b"a"],
        [b"succeeded", 200, b"", b"\xff", b"a"],
        [b"succeeded", 200, b"", b"X", b"a", b"x", b"b"],
        [b"succeeded", 200, b"", b"Set-Cookie", b"a=b"],
        [b"succeeded", 200, b"", b"SET_COOKIE", b"a=b"],
        [b"succeeded", 200, b"", b"Moonhook-Run-Id", b"a"],
        [b"succeeded", 200, b"", b"X-Accel-Redirect", b"/a"],
        [b"succeeded", 200, b"", *[part for n in range(102) for part in (b"X-%d" % n, b"a")]],
        [b"succeeded", 200, b"", b"X", b"a" * (17 * 1024)],
        [b"succeeded", 200, b"x" * (1024 * 1024 + 1)],
    ],
)
def test_an_impossible_answer_is_a_protocol_error(answer):
    with pytest.raises(ProtocolError):
        child_frames.ending_of_run(answer, Limits())


@pytest.mark.parametrize("answer", [[], [None, None], [b"message"], [b"message", 1], [1, 1, b""]])
def test_an_impossible_answer_to_a_syntax_check_is_a_protocol_error(answer):
    with pytest.raises(ProtocolError):
        child_frames.ending_of_syntax_check(answer, b"")


@pytest.mark.parametrize(
    ("said", "line"),
    [(1, 1), (4, 4), (5, None), (0, None), (-1, None), (2**31, None), (2**63, None), (None, None)],
)
def test_a_line_outside_the_source_is_dropped(said, line):
    source = b"a\nb\r\nc\rd"
    ending = child_frames.ending_of_run([b"failed", b"message", said, b""], Limits(), source)
    assert ending.error.line == line


def test_the_texts_of_an_error_are_cut():
    ending = child_frames.ending_of_run([b"failed", b"m" * 500_000, None, b"t" * 500_000], Limits())
    assert len(ending.error.message) == MAX_MESSAGE_BYTES
    assert len(ending.error.traceback) == MAX_TRACEBACK_BYTES


@pytest.mark.parametrize("answer", [[b"retry", b"r" * 500_000, None], [b"fail", b"r" * 500_000]])
def test_the_reason_of_a_verdict_is_cut(answer):
    ending = child_frames.ending_of_run(answer, Limits())
    assert len(ending.verdict.reason) == len(ending.error.message) == MAX_MESSAGE_BYTES


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGRTMIN + 1, 62])
def test_a_death_by_any_signal_is_a_failed_run(number):
    ending = ending_from_exit_status(int(number), Limits(), None)
    assert ending.kind == "failed"
    assert "crashed" in ending.error.message


def test_arguments_may_hold_thousands_of_values():
    headers = {b"X-%d" % number: b"1" for number in range(9000)}
    arguments = [{b"headers": headers}]
    assert child_frames.Call("http.request", protocol.pack(arguments)).arguments() == arguments


@pytest.mark.parametrize(
    "arguments",
    [
        b"\xdd" + struct.pack(">I", 5000 * 5) + b"\xc0" * 5000 * 5,
        b"\xdf" + struct.pack(">I", 2**32 - 1) + b"\xc0" * 5000,
        b"\x91" * 5000 + b"\xc0",
        b"\x92\xc7\x00\x01" + b"\xc0" * 5000,
        b"\x92\xd9\x03abc\xdc\xff\xff" + b"\x90" * 65_535,
    ],
)
def test_arguments_that_unpack_into_too_many_values_are_refused(arguments):
    with pytest.raises(HostCallError, match="the arguments hold more than 20,000 values"):
        child_frames.Call("http.request", arguments).arguments()
