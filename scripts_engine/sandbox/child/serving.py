"""A locked-down process that runs the scripts of one tenant, one after the other."""

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
from scripts_engine.sandbox.log_area import LogArea
from scripts_engine.sandbox.protocol import FROM_WORKER, FrameReader, ProtocolError, Tag

# Above a script's limit: what the prelude and lupa may need when the script has used its own.
MEMORY_RESERVE_BYTES = 256 * 1024
# Until a run says what it may use.
LUA_MEMORY_BYTES = Limits().lua_memory_bytes
# CPU time in which a run can hardly use much memory; a longer one may have had, and dropped, any.
SHORT_RUN_SECONDS = 0.002


class ParentGone(Exception):
    """The worker closed the socket: nothing is left to do."""


class Child:
    """Serves frames until the worker hangs up.

    A state is made ready while the worker is busy elsewhere, so that a run finds one waiting.
    """

    def __init__(self, channel: socket.socket, log_area: LogArea, prelude: Prelude) -> None:
        self._channel = channel
        self._reader = FrameReader(FROM_WORKER, protocol.unpack_message)
        self._prelude = prelude
        self._operations = Operations(log_area, self._call_host, prelude.later)
        self._serve = self._operations.serve
        self._state = self._new_state()
        self._cpu_seconds = time.process_time()

    def send(self, *message: Any) -> None:
        self._channel.sendall(protocol.encode(message))

    def serve_forever(self) -> NoReturn:
        """Raises ParentGone at the end."""
        while True:
            tag, *fields = self._receive()
            if tag == Tag.RUN:
                answer = self._run(*fields)
            elif tag == Tag.CHECK:
                answer = self._check(*fields)
            else:
                raise ProtocolError(f"unexpected frame {tag}")
            cpu_seconds = time.process_time()
            self.send(Tag.DONE, cpu_seconds, *answer)
            # First drop the old one, whose memory may be needed.
            del self._state
            if cpu_seconds - self._cpu_seconds > SHORT_RUN_SECONDS:
                give_back_memory()
            self._state = self._new_state()
            self._cpu_seconds = time.process_time()

    def _run(
        self,
        source: bytes,
        chunk_name: bytes,
        params: dict[bytes, bytes],
        headers: list[list[bytes]],
        limits: list[int],
        is_traced: bool,
    ) -> Sequence[Any]:
        self._operations.start_run(params, headers)
        try:
            self._state.limit_memory(limits[0] + MEMORY_RESERVE_BYTES)
            return _as_sequence(self._state.run(source, chunk_name, is_traced, *limits))
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

    def _call_host(self, name: bytes, packed_arguments: bytes) -> Answer:
        try:
            self.send(Tag.CALL, name, packed_arguments)
        except protocol.FrameTooLarge as error:
            return False, str(error).encode()
        tag, content = self._receive()
        if tag == Tag.VALUE:
            return bytes(content)
        return False, content

    def _receive(self) -> list[Any]:
        while (message := self._reader.next_frame()) is None:
            if not self._reader.receive_from(self._channel):
                raise ParentGone
        return message

    def _new_state(self) -> LuaState:
        return LuaState(self._prelude, self._serve, LUA_MEMORY_BYTES)


def _message_of(error: LuaError) -> Sequence[Any]:
    """An error that the state itself did not describe: message, no line, no traceback."""
    return str(error).encode("utf-8", "replace")[:MAX_MESSAGE_BYTES], None, b""


def _as_sequence(returned: Any) -> Sequence[Any]:
    """What a Lua function returned: lupa gives several values as a tuple, one as itself."""
    return returned if isinstance(returned, tuple) else (returned,)


# The GNU C library's own; others give memory back by themselves.
_malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back_memory() -> None:
    """To the system: memory in small pieces is kept for later otherwise, however much it is."""
    if _malloc_trim is not None:
        _malloc_trim(0)
