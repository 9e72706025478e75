"""Frames whose bytes arrive in any pieces."""

from __future__ import annotations

import socket
import threading

import pytest

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.limits import MAX_FRAME_BYTES
from scripts_engine.sandbox.protocol import USUAL_BYTES, FrameReader, Tag

ANY_SIZE = dict.fromkeys(Tag, MAX_FRAME_BYTES)


def test_frames_that_arrive_byte_by_byte_are_read_whole():
    frames = protocol.encode([Tag.READY, b"x" * 100]) + protocol.encode([Tag.DONE, 1.0])
    reader, found = FrameReader(ANY_SIZE, protocol.unpack_message), []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for position in range(len(frames)):
            theirs.send(frames[position : position + 1])
            assert reader.receive_from(ours) == 1
            message = reader.next_frame()
            found += [message] if message else []
    assert found == [[Tag.READY, b"x" * 100], [Tag.DONE, 1.0]]


@pytest.mark.parametrize("size", [10, USUAL_BYTES - 10, USUAL_BYTES, 3 * USUAL_BYTES])
def test_frames_that_arrive_together_are_read_one_by_one(size):
    messages = [[Tag.READY, b"x" * size], [Tag.DONE, 1.0], [Tag.CALL, b"y" * size]]
    frames = b"".join(protocol.encode(message) for message in messages)
    reader, found = FrameReader(ANY_SIZE, protocol.unpack_message), []
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sending = threading.Thread(target=theirs.sendall, args=[frames])
        sending.start()
        while len(found) < len(messages):
            assert reader.receive_from(ours)
            while message := reader.next_frame():
                found.append(message)
        sending.join()
    assert found == messages
