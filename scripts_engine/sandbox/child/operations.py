"""The Python functions of the prelude: crypto and encodings, the params of the call, the log.

Role in a run: Lua calls Python only here, through the one function `serve`. It raises nothing,
since a script could reach the interpreter through an exception object. It holds no reference to a
Lua state, since that cycle would never be freed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from scripts_engine.sandbox.child import time_zones
from scripts_engine.sandbox.limits import figure_in_words
from scripts_engine.sandbox.log_area import LogArea
from scripts_engine.sandbox.reply_headers import is_reserved

Answer = bytes | bool | float | None | tuple[Literal[False], bytes]
# The message of Lua itself, which the prelude compares.
NOT_ENOUGH_MEMORY = b"not enough memory"

HostCaller = Callable[[bytes, bytes], Answer]
_FROM_URL_ALPHABET = bytes.maketrans(b"-_", b"+/")


class Operations:
    """The Python functions of one child, and the data of its current run."""

    def __init__(
        self, log_area: LogArea, call_host: HostCaller, chunks: Mapping[bytes, bytes]
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
            b"kept": self._take_kept,
            b"header.is_reserved": is_reserved,
            b"now": time.time,
            b"random": os.urandom,
            b"zone": time_zones.offset_at,
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
