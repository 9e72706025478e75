"""Serves the frames of the worker in a locked-down process: the runs of one tenant, one by one.

Role in a run: the child's counterpart of `parent/conversation`.
"""

from __future__ import annotations

import ctypes
import socket
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from scripts_engine.sandbox import protocol
from scripts_engine.sandbox.child.operations import Answer, Operations
from scripts_engine.sandbox.child.runtime import LuaError, LuaMemoryError, LuaState, Prelude
from scripts_engine.sandbox.contract import OutcomeKind
from scripts_engine.sandbox.limits import MAX_MESSAGE_BYTES, Limits
from scripts_engine.sandbox.protocol import FROM_WORKER, FrameReader, LogArea, ProtocolError, Tag

# The limit of a new state, until a run sets its own.
LUA_MEMORY_BYTES = Limits().lua_memory_bytes
# A state serves the next run only after one that used little, and so many in all.
SHORT_RUN_SECONDS = 0.002
SMALL_RUN_BYTES = 1024 * 1024
RUNS_PER_STATE = 1000
_SUCCEEDED = OutcomeKind.SUCCEEDED.value.encode()
# Only in glibc; other C libraries return memory by themselves.
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


class ParentGone(Exception):
    """The worker closed the socket."""


class Child:
    """Serves frames until the worker closes the socket.

    The next run is prepared right after an answer, so that it is ready when its frame arrives.
    """

    def __init__(self, channel: socket.socket, log_area: LogArea, prelude: Prelude) -> None:
        self._channel = channel
        self._reader = FrameReader(FROM_WORKER, protocol.unpack_message)
        self._prelude = prelude
        self._operations = Operations(log_area, self._call_host, prelude.later, self._need_library)
        self._serve = self._operations.serve
        self._state = self._new_state()
        self._cpu_seconds = time.process_time()

    def send(self, *message: Any) -> None:
        self._channel.sendall(protocol.encode(message))

    def serve_forever(self) -> NoReturn:
        """Serve until the worker closes the socket. Raises ParentGone then."""
        while True:
            tag, *fields = self._receive()
            if tag == Tag.RUN:
                answer = self._run(*fields)
            elif tag == Tag.CHECK:
                answer = self._check(*fields)
            elif tag == Tag.LIST:
                answer = self._list_globals(*fields)
            elif tag == Tag.COUNT:
                self.send(Tag.DONE, time.process_time(), self._state.runs)
                continue
            else:
                raise ProtocolError(f"unexpected frame {tag}")
            cpu_seconds = time.process_time()
            self.send(Tag.DONE, cpu_seconds, *answer)
            used_seconds = cpu_seconds - self._cpu_seconds
            is_plain_run = tag == Tag.RUN and not fields[-1]
            if is_plain_run and may_serve_again(self._state, answer, used_seconds):
                self._state.renew()
            else:
                self._replace_state(used_seconds)
            self._cpu_seconds = time.process_time()

    def _run(
        self,
        source: bytes,
        chunk_name: bytes,
        requires: bytes,
        params: dict[bytes, bytes],
        headers: list[list[bytes]],
        limits: list[int],
        is_traced: bool,
    ) -> Sequence[Any]:
        self._operations.start_run(params, headers)
        try:
            return _as_sequence(self._state.run(source, chunk_name, requires, is_traced, *limits))
        except (LuaMemoryError, MemoryError):
            return [OutcomeKind.OUT_OF_MEMORY]
        except LuaError as error:
            return [OutcomeKind.FAILED, *_message_of(error)]
        finally:
            self._operations.end_run()

    def _check(self, source: bytes, chunk_name: bytes) -> Sequence[Any]:
        try:
            return _as_sequence(self._state.check_syntax(source, chunk_name))
        except (LuaMemoryError, MemoryError):
            return [b"not enough memory to compile", None, b""]
        except LuaError as error:
            return _message_of(error)

    def _list_globals(self, source: bytes) -> Sequence[Any]:
        """Kind, name, line and suggestion of each use; none if there is no room to list them."""
        try:
            listed = self._state.list_globals(source)
        except (LuaMemoryError, MemoryError, LuaError):
            return ()
        return listed if isinstance(listed, tuple) else ()

    def _call_host(self, name: bytes, packed_arguments: bytes) -> Answer:
        try:
            self.send(Tag.CALL, name, packed_arguments)
        except protocol.FrameTooLarge as error:
            return False, str(error).encode()
        tag, content = self._receive()
        if tag == Tag.VALUE:
            return bytes(content)
        return False, content

    def _need_library(self, key: bytes) -> bytes:
        self.send(Tag.NEED, key)
        _, content = self._receive()
        return bytes(content)

    def _receive(self) -> list[Any]:
        while (message := self._reader.next_frame()) is None:
            if not self._reader.receive_from(self._channel):
                raise ParentGone
        return message

    def _new_state(self) -> LuaState:
        return LuaState(self._prelude, self._serve, LUA_MEMORY_BYTES)

    def _replace_state(self, used_seconds: float) -> None:
        # Drop the old state first, since the new one may need its memory.
        del self._state
        if used_seconds > SHORT_RUN_SECONDS:
            give_back_memory()
        self._state = self._new_state()


def may_serve_again(state: LuaState, answer: Sequence[Any], cpu_seconds: float) -> bool:
    """Whether the next run may follow in the state of one that ended so.

    Only after a small run that succeeded; compiling does not count, or large sources would be
    compiled in each run. Every other end of a script, a trace, which sets hooks, and a syntax check
    or a listing cost a new state; so do many runs, to bound what they can do to the sizes of Lua's
    tables.
    """
    if answer[0] != _SUCCEEDED or state.runs + 1 >= RUNS_PER_STATE:
        return False
    bytes_of_run = state.bytes_of_run()
    if cpu_seconds <= SHORT_RUN_SECONDS and bytes_of_run <= SMALL_RUN_BYTES:
        return True
    compiled_bytes, compiling_seconds = state.cost_of_compiling()
    return (
        cpu_seconds - compiling_seconds <= SHORT_RUN_SECONDS
        and bytes_of_run - compiled_bytes <= SMALL_RUN_BYTES
    )


def _message_of(error: LuaError) -> Sequence[Any]:
    """Message, no line, no traceback: the fields of an error that Lua did not describe."""
    return str(error).encode("utf-8", "replace")[:MAX_MESSAGE_BYTES], None, b""


def _as_sequence(returned: Any) -> Sequence[Any]:
    """The values of a Lua function: lupa returns several as a tuple, but a single one bare."""
    return returned if isinstance(returned, tuple) else (returned,)


def give_back_memory() -> None:
    """Return freed heap to the OS; glibc otherwise keeps it."""
    if _malloc_trim is not None:
        _malloc_trim(0)
