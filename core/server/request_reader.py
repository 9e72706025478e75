"""Finds the end of a request in its bytes, so that no thread waits for the rest of it."""

import re
from io import BufferedIOBase, BufferedReader, BytesIO, RawIOBase
from typing import Any

from gunicorn.http.errors import (
    ChunkMissingTerminator,
    InvalidHeader,
    InvalidHeaderName,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
)
from httptools import HttpParserError, HttpRequestParser

from core.server.request import (
    MAX_FIELD_BYTES,
    MAX_FIELDS,
    MAX_LINE_BYTES,
    ReceivedRequest,
    read_request,
)

_MAX_HEAD_BYTES = (1 + MAX_FIELDS) * MAX_FIELD_BYTES
# A reader of the body asks for slightly more than the limit, to notice that it is exceeded.
_SLACK_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
# Tiny chunks cost far more than their bytes, so all but the body, which includes trailers, may take
# this much plus an eighth of it. Clients that send a line of text per chunk stay well below it.
_CHUNK_LINES_BYTES = 16 * 1024
_CHUNKED_HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
# RFC 9110, section 6.5.1. llhttp refuses those that frame a message.
_NO_TRAILERS = frozenset({b"authorization", b"host", b"te", b"trailer"})


class BodyNotReceived(BaseException):
    """The application asked for bytes of a body that is too large to wait for.

    Not an ``Exception``: code that reads a body would take it for a disconnected client, and this
    client is still connected and gets an error reply.
    """


class RequestReader:
    """Takes one request from the start of a buffer. Call ``take`` after adding bytes."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._seen = 0
        self._head_bytes = 0
        self._chunks: _Chunks | None = None
        self.request: ReceivedRequest | None = None
        """Once its head is here."""
        self.body: bytes | bytearray = b""
        self.refusal: ParseException | None = None
        """What gunicorn's worker answers instead of the application."""
        self.is_whole = False
        self.is_too_large = False

    @property
    def is_ready(self) -> bool:
        """Whether the request can be answered now, though it may not be whole."""
        return self.is_whole or self.is_too_large or self.refusal is not None

    @property
    def held_bytes(self) -> int:
        return self._head_bytes + len(self.body)

    def take(self, buffer: bytearray) -> bool:
        """Returns whether the request is ready now."""
        if self.is_ready:
            return True
        try:
            if self.request is None:
                self._take_head(buffer)
            if self.request is not None:
                self._take_body(self.request, buffer)
        except ParseException as refusal:
            self.refusal = refusal
        return self.is_ready

    def take_the_last(self, buffer: bytearray) -> bool:
        """Like ``take``, after the client has sent its last byte."""
        if self.request is not None and self.request.is_chunked:
            self.refusal = ChunkMissingTerminator(b"")
        elif self.request is not None:
            # Shorter than its Content-Length, which the application sees.
            self.body = bytes(buffer)
        return self.request is not None

    def open_body(self) -> BufferedIOBase:
        return BufferedReader(_Start(self.body)) if self.is_too_large else BytesIO(self.body)

    def _take_head(self, buffer: bytearray) -> None:
        # One empty line before a request is ignored.
        start = 2 if buffer.startswith(b"\r\n") else 0
        found = buffer.find(_END, max(start, self._seen - 3))
        if found < 0:
            self._check_part_of_head(buffer, start)
            return
        end = found + len(_END)
        head = bytes(buffer[start:end])
        del buffer[:end]
        self._head_bytes = end
        self.request = read_request(head)
        if self.request.is_chunked:
            self._chunks = _Chunks()
            self.body = self._chunks.found.body

    def _check_part_of_head(self, buffer: bytearray, start: int) -> None:
        """Refuses a head whose end may never come."""
        if _BARE_LF.search(buffer, self._seen):
            raise InvalidHeader("bare LF as line terminator")
        self._seen = len(buffer)
        if len(buffer) > _MAX_HEAD_BYTES:
            raise LimitRequestHeaders("max buffer headers")
        if len(buffer) > start + MAX_LINE_BYTES + 1 and buffer.find(b"\r\n", start) < 0:
            raise LimitRequestLine(len(buffer), MAX_LINE_BYTES)

    def _take_body(self, request: ReceivedRequest, buffer: bytearray) -> None:
        if self._chunks is not None:
            self._chunks.take(buffer)
            has_long_lines = self._chunks.line_bytes > _CHUNK_LINES_BYTES + len(self.body) // 8
            is_long = len(self.body) > self._max_body_bytes + _SLACK_BYTES
            self.is_too_large = has_long_lines or is_long
            self.is_whole = self._chunks.found.is_whole and not self.is_too_large
        elif request.content_length > self._max_body_bytes:
            self.is_too_large = True
        elif len(buffer) >= request.content_length:
            self.body = bytes(buffer[: request.content_length])
            del buffer[: request.content_length]
            self.is_whole = True


class _Start(RawIOBase):
    """The bytes that a client has sent of a body that is too large."""

    def __init__(self, body: bytes | bytearray) -> None:
        super().__init__()
        self._body = BytesIO(body)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._body.readinto(buffer)
        if not count:
            raise BodyNotReceived
        return count


class _Found:
    """Collects what llhttp reads of a chunked body."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.on_body = self.body.extend
        self.trailers: list[bytes] = []
        self.has_size = False
        self.is_whole = False

    def on_chunk_header(self) -> None:
        self.has_size = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self.trailers.append(name.lower())

    def on_message_complete(self) -> None:
        self.is_whole = True


class _Chunks:
    """Decodes a chunked body.

    llhttp would go on with the next request, and httptools does not say where that begins. So
    llhttp gets the bytes up to the end of one line at a time, and after the line with a chunk's
    size also those of the chunk.
    """

    def __init__(self) -> None:
        self.found = _Found()
        self._parser = HttpRequestParser(self.found)
        self._parser.feed_data(_CHUNKED_HEAD)
        self.found.trailers.clear()
        # Positions in the buffer: of the first byte that llhttp has not had, and of the first line
        # whose end it has not had.
        self._next = 0
        self._line = 0
        self._taken_bytes = 0

    @property
    def line_bytes(self) -> int:
        """How many bytes were not of the body."""
        return self._taken_bytes - len(self.found.body)

    def take(self, buffer: bytearray) -> None:
        while self._next < len(buffer) and not self.found.is_whole:
            line_end = buffer.find(b"\r\n", self._line)
            end = len(buffer) if line_end < 0 else line_end + 2
            self._parse(bytes(buffer[self._next : end]))
            self._next = end
            if self.found.has_size:
                self.found.has_size = False
                size = int(buffer[self._line : line_end].partition(b";")[0], 16)
                self._line = end + size + 2 if size else end
            elif line_end >= 0:
                self._line = end
        done = min(self._next, self._line)
        del buffer[:done]
        self._next -= done
        self._line -= done

    def _parse(self, piece: bytes) -> None:
        self._taken_bytes += len(piece)
        try:
            self._parser.feed_data(piece)
        except HttpParserError as error:
            raise InvalidHeader(str(error)) from error
        trailers = self.found.trailers
        if len(trailers) > MAX_FIELDS:
            raise LimitRequestHeaders("limit request headers fields")
        if not _NO_TRAILERS.isdisjoint(trailers):
            raise InvalidHeaderName("trailer")
