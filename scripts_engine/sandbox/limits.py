"""Every number that bounds a run, in one place."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

MAX_SOURCE_BYTES = 64 * KIB
MAX_WALL_SECONDS = 25.0
MAX_LOG_BYTES = 64 * KIB
MAX_LOG_LINES = 1000
MAX_REPLY_BYTES = 1 * MIB
MAX_PAYLOAD_BYTES = 1 * MIB
MAX_MESSAGE_BYTES = 4 * KIB
MAX_TRACEBACK_BYTES = 16 * KIB
# Of a reply and of an HTTP request or response of a script; bytes of names and values together.
MAX_HEADERS = 100
MAX_HEADER_BYTES = 16 * KIB
# A message between the processes: a payload, a reply, or what a host call carries.
MAX_FRAME_BYTES = 8 * MIB
# What a child answers at the end of a run: a reply with its headers, or an error.
MAX_ANSWER_BYTES = MAX_REPLY_BYTES + 64 * KIB
# Fields of an answer (a hundred headers with their values among them), and values in the
# arguments of one host call: a small message could otherwise unfold into millions of objects.
MAX_ANSWER_FIELDS = 256
MAX_ARGUMENT_VALUES = 20_000
MAX_ARGUMENT_DEPTH = 32
# A script may catch the error of a host call past the limit. One that goes on is ended.
MAX_REFUSED_HOST_CALLS = 100
MAX_HOST_CALL_ERROR_CHARS = 1000
# What ToJson may write; a shared table that unfolds without end stops here.
MAX_JSON_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use. Going over any of them ends the run with an outcome that names it."""

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    lua_memory_bytes: int = 64 * MIB
    reply_bytes: int = MAX_REPLY_BYTES
    log_bytes: int = MAX_LOG_BYTES
    log_lines: int = MAX_LOG_LINES
    json_depth: int = 128
    host_calls: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.wall_seconds <= MAX_WALL_SECONDS:
            raise ValueError(f"wall_seconds must be over 0 and at most {MAX_WALL_SECONDS:g}")
        if self.lua_memory_bytes < MIB:
            raise ValueError("lua_memory_bytes must be at least 1 MiB")
        if not 0 <= self.log_bytes <= MAX_LOG_BYTES or not 0 <= self.log_lines <= MAX_LOG_LINES:
            raise ValueError("the log limits are over the size of the log area")
        if not 0 <= self.reply_bytes <= MAX_REPLY_BYTES:
            raise ValueError(f"reply_bytes must be at most {MAX_REPLY_BYTES}")

    def as_run_arguments(self) -> tuple[int, ...]:
        """What `run` of the prelude takes, the memory limit first."""
        return (
            self.lua_memory_bytes,
            self.reply_bytes,
            self.json_depth,
            self.log_bytes,
            self.log_lines,
        )


def figure_in_words(size_bytes: int) -> str:
    """65536 -> "64 KiB": how a limit is named in a message."""
    if size_bytes >= MIB and size_bytes % MIB == 0:
        return f"{size_bytes // MIB} MiB"
    if size_bytes >= KIB and size_bytes % KIB == 0:
        return f"{size_bytes // KIB} KiB"
    return f"{size_bytes} bytes"
