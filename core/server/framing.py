"""Finds the end of a request in its bytes, so that no thread waits for the rest of it.

gunicorn's parser validates every request; this module only decides whether the parser can do so
without more bytes. A malformed request is ready at once, because the parser refuses it.
"""

import re

# gunicorn's own limits: a request line and a hundred fields.
_MAX_LINE_BYTES = 8190
_MAX_HEAD_BYTES = 101 * (_MAX_LINE_BYTES + 2)
# A reader of the body asks for slightly more than the limit, to notice that it is exceeded.
_SLACK_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")
# Blanks are stripped afterwards: matched by the pattern, they would cause backtracking.
_FRAMING_FIELDS = re.compile(
    rb"\r\n(?:(content-length)|(transfer-encoding)|(expect)):([^\r\n]*)(?=\r\n)", re.IGNORECASE
)
_CHUNK_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")
# Tiny chunks cost far more than their bytes, so the lines of chunks may take this much plus an
# eighth of the body. Clients that send a line of text per chunk stay well below it.
_CHUNK_LINES_BYTES = 16 * 1024


class Frame:
    """The extent of the request at the start of a buffer. Call ``look`` after adding bytes."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._seen = 0
        # Where the next chunk, or the trailer section, begins.
        self._chunk_at = 0
        self._chunked_bytes = 0
        # The bytes in the lines of chunks.
        self._line_bytes = 0
        self._is_chunked = False
        self._is_in_trailers = False
        self._is_head_read = False
        self.is_ready = False
        """Whether a thread may take the request: it is whole, too large or malformed."""
        self.is_too_large = False
        self.end: int | None = None
        """The number of its bytes, once known."""
        self.head_end: int | None = None
        """The number of bytes before a body of declared length."""
        self.wants_continue = False
        """Whether the client waits for ``100 Continue`` before it sends the body."""

    @property
    def is_whole(self) -> bool:
        return self.is_ready and self.end is not None

    def look(self, buffer: bytearray) -> bool:
        """Returns whether the request is ready now."""
        if not self.is_ready and not self._is_head_read:
            self._look_for_head(buffer)
        if not self.is_ready and self._is_chunked:
            self._look_for_chunks(buffer)
        if not self.is_ready and self.end is not None:
            self.is_ready = len(buffer) >= self.end
        return self.is_ready

    def _look_for_head(self, buffer: bytearray) -> None:
        # One empty line before a request is ignored.
        start = 2 if buffer.startswith(b"\r\n") else 0
        found = buffer.find(_END, max(start, self._seen - 3))
        if found < 0:
            has_bare_lf = _BARE_LF.search(buffer, self._seen) is not None
            self._seen = len(buffer)
            has_long_line = len(buffer) > _MAX_LINE_BYTES and buffer.find(b"\r\n", start) < 0
            is_hopeless = has_long_line or len(buffer) > _MAX_HEAD_BYTES
            self.is_ready = is_hopeless or has_bare_lf
            return
        self._is_head_read = True
        self._read_head(buffer, start, found + len(_END))

    def _read_head(self, buffer: bytearray, start: int, head_end: int) -> None:
        lengths, encodings = [], []
        expectations = set()
        for length, encoding, expect, padded in _FRAMING_FIELDS.findall(buffer, 0, head_end):
            value = padded.strip(b" \t")
            if length:
                lengths.append(value)
            elif encoding:
                encodings.append(value.lower())
            elif expect:
                expectations.add(value.lower())
        if expectations - {b"100-continue"}:
            # The client may wait for a reply before it sends the body.
            self.is_ready = True
            return
        # An HTTP/1.0 client would take ``100 Continue`` for the reply.
        is_old = buffer.find(b" HTTP/1.0\r\n", 0, buffer.find(b"\r\n", start) + 2) >= 0
        self.wants_continue = bool(expectations) and not is_old
        if not lengths and not encodings:
            self.end = self.head_end = head_end
        elif not encodings and len(lengths) == 1 and lengths[0].isdigit():
            self._expect_length(lengths[0], head_end)
        elif not lengths and encodings == [b"chunked"]:
            self._is_chunked, self._chunk_at = True, head_end
        else:
            self.is_ready = True

    def _expect_length(self, digits: bytes, head_end: int) -> None:
        if len(digits) > 18 or int(digits) > self._max_body_bytes:
            self.is_ready = self.is_too_large = True
        else:
            self.end, self.head_end = head_end + int(digits), head_end

    def _look_for_chunks(self, buffer: bytearray) -> None:
        while not self._is_in_trailers:
            line = _CHUNK_SIZE_LINE.match(buffer, self._chunk_at, self._chunk_at + _MAX_LINE_BYTES)
            if line is None:
                line_end = buffer.find(b"\r\n", self._chunk_at, self._chunk_at + _MAX_LINE_BYTES)
                is_long = len(buffer) - self._chunk_at > _MAX_LINE_BYTES
                self.is_ready = line_end >= 0 or is_long
                return
            size_bytes = int(line[1], 16)
            if size_bytes == 0:
                self._is_in_trailers = True
                # Before the line end, which may also end an empty trailer section.
                self._chunk_at = line.end() - 2
                break
            body_bytes = self._chunked_bytes + size_bytes
            rest = body_bytes - self._max_body_bytes - _SLACK_BYTES
            next_at = line.end() + size_bytes + 2
            # Ready as soon as the reader of the body can see that the limit is exceeded.
            if rest > 0 and len(buffer) >= next_at - rest:
                self.is_ready = self.is_too_large = True
                return
            if len(buffer) < next_at:
                return
            self._chunk_at, self._chunked_bytes = next_at, body_bytes
            self._line_bytes += next_at - line.start() - size_bytes
            if self._line_bytes > _CHUNK_LINES_BYTES + body_bytes // 8:
                self.is_ready = self.is_too_large = True
                return
        self._look_for_trailers(buffer)

    def _look_for_trailers(self, buffer: bytearray) -> None:
        found = buffer.find(_END, max(self._chunk_at, self._seen - 3))
        self._seen = len(buffer)
        if found >= 0:
            self.end = found + len(_END)
        else:
            self.is_ready = self._seen - self._chunk_at > _MAX_HEAD_BYTES
