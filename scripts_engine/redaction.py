"""Redaction of what is recorded of a run: the secrets that its script read are hidden."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import AnyStr, Generic
from urllib.parse import unquote_to_bytes

from core.http.redaction import REDACTED

# Shorter secrets would match parts of ordinary text.
MIN_SECRET_LENGTH = 4
# A text with more redacted stretches is replaced as a whole.
MAX_STRETCHES = 10_000
# How many layers of percent-encoding are undone to find a secret.
MAX_DECODINGS = 4


class Redactor:
    """Replaces secrets, both verbatim and as JSON writes them, by a mark.

    All secrets are searched for in the original text, never in a text that already contains marks.
    The mark may be longer than the secret, so each result is cut to a given length.
    """

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        forms = {form for secret in secrets for form in (secret, _in_json(secret))}
        long_enough = [form for form in forms if len(form) >= MIN_SECRET_LENGTH]
        self._patterns = [_Pattern(form) for form in long_enough]
        self._text_patterns = [_Pattern(form.decode("utf-8", "replace")) for form in long_enough]

    def is_disguised_in(self, content: bytes) -> bool:
        """Whether the content may hold a secret in another case, or percent-encoded."""
        if not self._patterns:
            return False
        for _ in range(MAX_DECODINGS):
            folded = content.lower()
            if any(pattern.content.lower() in folded for pattern in self._patterns):
                return True
            decoded = unquote_to_bytes(content.replace(b"+", b" "))
            if decoded == content:
                return False
            content = decoded
        # Whatever is encoded in more layers than that may hide one.
        return True

    def bytes(self, content: bytes, max_bytes: int) -> bytes:
        return _without(content, self._patterns, REDACTED.encode())[:max_bytes]

    def text(self, text: str, max_chars: int, *, is_cut: bool = False) -> str:
        """``is_cut``: the text may end in the middle of a secret, because a limit has cut it."""
        partial = _partial_stretches(text, self._text_patterns) if is_cut else ()
        return storable(_without(text, self._text_patterns, REDACTED, partial))[:max_chars]

    def texts(self, texts: Sequence[str], max_chars: int, *, cut: int = 0) -> Iterator[str]:
        """Yields each text redacted, ``max_chars`` in total.

        ``cut`` is how many of the last texts may end in the middle of a secret.
        """
        left = max_chars
        for number, each in enumerate(texts):
            kept = self.text(each, left, is_cut=number >= len(texts) - cut)
            left -= len(kept)
            yield kept

    def is_hidden_in(self, value: str) -> bool:
        """Whether the value of a header contains a secret."""
        if not self._patterns:
            return False
        content = value.encode("latin-1")
        return any(pattern.content in content for pattern in self._patterns)

    def headers(self, headers: Iterable[tuple[str, str]], max_chars: int) -> list[list[str]]:
        """Redacts names and values, ``max_chars`` in total.

        Searched as bytes, because scripts write UTF-8 into headers, which are Latin-1 here.
        """
        kept: list[list[str]] = []
        left = max_chars
        for header in headers:
            kept.append([])
            for part in header:
                content = _without(part.encode("latin-1"), self._patterns, REDACTED.encode())
                kept[-1].append(storable(content.decode("latin-1"))[:left])
                left -= len(kept[-1][-1])
        return kept


def storable(text: str) -> str:
    """Replaces NUL and surrogates, which PostgreSQL's text and jsonb cannot store."""
    if text.isascii():
        return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode("utf-8")


class _Pattern(Generic[AnyStr]):
    """One form of a secret, with its self-overlaps, which are computed on the first match."""

    def __init__(self, content: AnyStr) -> None:
        self.content: AnyStr = content

    @cached_property
    def borders(self) -> list[int]:
        """For each prefix, the length of its longest proper prefix that is also its suffix.

        This is the failure function of Knuth, Morris and Pratt.
        """
        content = self.content
        borders = [0] * len(content)
        border = 0
        for position in range(1, len(content)):
            while border and content[position] != content[border]:
                border = borders[border - 1]
            if content[position] == content[border]:
                border += 1
            borders[position] = border
        return borders

    @property
    def period(self) -> int:
        """The smallest shift at which the pattern overlaps itself, or its length if it does not."""
        return len(self.content) - self.borders[-1]


def _in_json(secret: bytes) -> bytes:
    """The secret as written inside a JSON string."""
    return json.dumps(secret.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()


def _without(
    content: AnyStr,
    patterns: Sequence[_Pattern[AnyStr]],
    redacted: AnyStr,
    partial: Iterable[tuple[int, int]] = (),
) -> AnyStr:
    """Replaces each stretch covered by the patterns or ``partial`` by one mark.

    Takes time linear in the length of the content for each pattern, whatever the pattern.
    """
    if not patterns:
        return content
    found = (stretch for each in patterns for stretch in _stretches(content, each))
    covered = sorted(islice(chain(found, partial), MAX_STRETCHES + 1))
    if not covered:
        return content
    if len(covered) > MAX_STRETCHES:
        return redacted
    pieces: list[AnyStr] = []
    position = -1
    for start, end in covered:
        # Stretches that overlap or touch share one mark.
        if start > position:
            pieces += [content[max(position, 0) : start], redacted]
        position = max(position, end)
    pieces.append(content[position:])
    return content[:0].join(pieces)


def _partial_stretches(text: str, patterns: Iterable[_Pattern[str]]) -> Iterator[tuple[int, int]]:
    """The ends of the text that are beginnings of a pattern."""
    # A character that was cut has become a replacement character.
    whole = text.rstrip("\ufffd")
    for each in patterns:
        length = _overlap(whole, each)
        if length >= MIN_SECRET_LENGTH:
            yield len(whole) - length, len(text)


def _overlap(text: str, pattern: _Pattern[str]) -> int:
    """The length of the longest end of the text that is a beginning of the pattern."""
    content = pattern.content
    end = text[-len(content) :]
    start = end.find(content[:MIN_SECRET_LENGTH])
    if start < 0:
        return 0
    length = 0
    for character in end[start:]:
        while length and (length == len(content) or character != content[length]):
            length = pattern.borders[length - 1]
        length += character == content[length]
    return length


def _stretches(content: AnyStr, pattern: _Pattern[AnyStr]) -> Iterator[tuple[int, int]]:
    """Start and end of each occurrence; occurrences that overlap periodically are one stretch."""
    start = content.find(pattern.content)
    if start < 0:
        return
    length, period = len(pattern.content), pattern.period
    while start >= 0:
        end = start + length + _repeated(content, start + length, period)
        yield start, end
        # An occurrence that starts earlier than this belongs to the stretch just found.
        start = content.find(pattern.content, end - min(length - period, period - 1))


def _repeated(content: AnyStr, position: int, period: int) -> int:
    """For how many characters, in whole periods, the period before the position repeats.

    Each comparison is twice as long as the previous one, so few of them run in Python.
    """
    repeated, stride = 0, period
    while True:
        start = position + repeated
        ahead = content[start : start + stride]
        if len(ahead) == stride and ahead == content[start - period : start - period + stride]:
            repeated += stride
            stride *= 2
        elif stride > period:
            stride = period
        else:
            return repeated
