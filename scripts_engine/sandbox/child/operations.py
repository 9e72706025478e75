"""The Python functions of the prelude: crypto, encodings, time zones, params of the call, the log.

Role in a run: Lua calls Python only here, through the one function `serve`. It raises nothing,
since a script could reach the interpreter through an exception object. It holds no reference to a
Lua state, since that cycle would never be freed.

A locked-down child cannot read the IANA database: the fork server reads the files once, and a child
reads a zone from that memory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
import os
import re
import time
import zoneinfo
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

from scripts_engine.sandbox.limits import figure_in_words, is_reserved
from scripts_engine.sandbox.protocol import LogArea

MAX_ZONE_BYTES = 64 * 1024
# A zone that was read takes some kilobytes.
MAX_ZONES_READ = 16
_PART = re.compile(r"[A-Z][A-Za-z0-9_+\-]*")
_MAGIC = b"TZif"
Answer = bytes | bool | float | None | tuple[Literal[False], bytes]
# The message of Lua itself, which the prelude compares.
NOT_ENOUGH_MEMORY = b"not enough memory"
HostCaller = Callable[[bytes, bytes], Answer]
# Returns a packed library by its key.
LibrarySource = Callable[[bytes], bytes]
_FROM_URL_ALPHABET = bytes.maketrans(b"-_", b"+/")


@cache
def zone_files() -> Mapping[bytes, bytes]:
    """The compiled zones by name. The fork server calls this before its first child.

    Empty if the system has no time zone database.
    """
    files: dict[bytes, bytes] = {}
    # Many zones are aliases; their content is kept once.
    contents: dict[bytes, bytes] = {}
    for folder in zoneinfo.TZPATH:
        for name, content in _files_in(folder):
            files.setdefault(name, contents.setdefault(content, content))
    return files


def _files_in(root: str) -> Iterator[tuple[bytes, bytes]]:
    for folder, folders, files in os.walk(root):
        # Not "posix" and "right", which hold every zone once more.
        folders[:] = filter(_PART.fullmatch, folders)
        for file in filter(_PART.fullmatch, files):
            path = Path(folder, file)
            with suppress(OSError), path.open("rb", buffering=0) as opened:
                content = opened.read(MAX_ZONE_BYTES)
                if content.startswith(_MAGIC):
                    yield str(path.relative_to(root)).encode(), content


def offset_at(seconds: int, name: bytes) -> bytes | tuple[Literal[False], bytes]:
    """The offset from UTC in seconds, 1 for daylight saving time, and the abbreviation.

    Returns False and a message if the zone is unknown or has no such time.
    """
    if name not in zone_files():
        if not zone_files():
            return False, b"this server has no time zone database"
        return False, b'unknown time zone "%b"' % name[:64]
    try:
        moment = datetime.fromtimestamp(seconds, _zone(name))
    except (OverflowError, ValueError):
        return False, b"the time is out of range"
    offset = int((moment.replace(tzinfo=UTC) - moment).total_seconds())
    return f"{offset} {int(bool(moment.dst()))} {moment.tzname()}".encode()


@lru_cache(maxsize=MAX_ZONES_READ)
def _zone(name: bytes) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo.from_file(io.BytesIO(zone_files()[name]), key=name.decode())


class Operations:
    """The Python functions of one child, and the data of its current run."""

    def __init__(
        self,
        log_area: LogArea,
        call_host: HostCaller,
        chunks: Mapping[bytes, bytes],
        need_library: LibrarySource,
    ) -> None:
        """`chunks` are the compiled parts of the prelude that are loaded on first use."""
        self._log_area = log_area
        self._params: dict[bytes, bytes] = {}
        self._headers: dict[bytes, bytes] = {}
        self._kept: bytes | None = None
        self._table: dict[bytes, Callable[..., Answer]] = {
            b"chunk": chunks.__getitem__,
            b"param": self._param,
            b"header": self._header,
            b"log": self._log,
            b"log.cut": self._log_cut,
            b"line": log_area.set_current_line,
            b"call": call_host,
            b"library": need_library,
            b"kept": self._take_kept,
            b"header.is_reserved": is_reserved,
            b"now": time.time,
            b"random": os.urandom,
            b"zone": offset_at,
            b"crypto.md5": _md5,
            b"crypto.sha1": _sha1,
            b"crypto.sha256": _sha256,
            b"crypto.sha512": _sha512,
            b"crypto.hmac_sha1": _hmac_sha1,
            b"crypto.hmac_sha256": _hmac_sha256,
            b"crypto.hmac_sha512": _hmac_sha512,
            b"crypto.equals": hmac.compare_digest,
            b"base64.encode": base64.b64encode,
            b"base64.decode": _base64_decode,
            b"base64.urlencode": _base64_urlencode,
            b"base64.urldecode": _base64_urldecode,
            b"hex.encode": binascii.hexlify,
            b"hex.decode": _hex_decode,
        }

    def start_run(self, params: dict[bytes, bytes], headers: list[list[bytes]]) -> None:
        self._log_area.clear()
        self._params = params
        joined: dict[bytes, bytes] = {}
        for name, value in headers:
            key = name.lower()
            joined[key] = joined[key] + b", " + value if key in joined else value
        self._headers = joined

    def end_run(self) -> None:
        self._params = {}
        self._headers = {}
        self._kept = None

    def serve(self, operation: bytes, room_bytes: float, *values: Any) -> Answer:
        """The answer of an operation, or False and a message.

        Lua must not run out of memory while it copies an answer. One longer than `room_bytes` is
        therefore kept, for Lua to collect garbage and fetch with b"kept".
        """
        try:
            answer = self._table[operation](*values)
            if isinstance(answer, bytes) and len(answer) > room_bytes:
                self._kept = answer
                return False, NOT_ENOUGH_MEMORY
            return answer
        except MemoryError:
            return False, NOT_ENOUGH_MEMORY
        except BaseException as error:  # noqa: BLE001
            # A script could escape through an exception object.
            return False, f"internal error ({type(error).__name__})".encode()

    def _param(self, name: bytes) -> bytes | None:
        return self._params.get(name)

    def _header(self, name: bytes) -> bytes | None:
        return self._headers.get(name.lower())

    def _take_kept(self) -> Answer:
        kept, self._kept = self._kept, None
        return (False, NOT_ENOUGH_MEMORY) if kept is None else kept

    def _log(self, level: int, text: bytes) -> None:
        self._log_area.append(time.time(), level, text)

    def _log_cut(self, level: int, unit: bytes, limit: int) -> None:
        figure = figure_in_words(limit) if unit == b"bytes" else f"{limit:,} lines"
        self._log(level, f"the log is cut here: over {figure}".encode())


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()


def _sha1(data: bytes) -> bytes:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest().encode()


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _sha512(data: bytes) -> bytes:
    return hashlib.sha512(data).hexdigest().encode()


def _hmac_sha1(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha1").hex().encode()


def _hmac_sha256(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256").hex().encode()


def _hmac_sha512(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha512").hex().encode()


def _base64_decode(data: bytes) -> Answer:
    try:
        return binascii.a2b_base64(data, strict_mode=True)
    except binascii.Error:
        return False, b"not valid base64"


def _base64_urlencode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _base64_urldecode(data: bytes) -> Answer:
    if b"+" in data or b"/" in data:
        return False, b"not valid base64"
    padded = data.rstrip(b"=")
    padded += b"=" * (-len(padded) % 4)
    return _base64_decode(padded.translate(_FROM_URL_ALPHABET))


def _hex_decode(data: bytes) -> Answer:
    try:
        return binascii.unhexlify(data)
    except binascii.Error:
        return False, b"not valid hexadecimal"
