"""Makes what a run shows fit to be kept."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import AnyStr, Generic

from core.http.redaction import REDACTED

# Shorter ones would tear up ordinary text, and are no secrets.
SHORTEST_HIDDEN = 4
# A text with more of them is not kept at all.
MAX_STRETCHES = 10_000


class Recorder:
    """Leaves out the secrets that the script was given, as they are and as JSON writes them.

    All are looked for in what the script showed, never in what was made of it. Hiding a short
    secret makes a text longer: it is cut to the limit of what it was made from.
    """

    def __init__(self, hidden: Iterable[bytes] = ()) -> None:
        forms = {form for secret in hidden for form in (secret, _in_json(secret))}
        long_enough = [form for form in forms if len(form) >= SHORTEST_HIDDEN]
        self._hidden = [_Hidden(form) for form in long_enough]
        self._hidden_texts = [_Hidden(form.decode("utf-8", "replace")) for form in long_enough]

    def bytes(self, content: bytes, max_bytes: int) -> bytes:
        return _without(content, self._hidden, REDACTED.encode())[:max_bytes]

    def text(self, text: str, max_chars: int, *, is_cut: bool = False) -> str:
        """``is_cut``: a limit may have cut it before, and a secret with it."""
        rest = _cut_stretches(text, self._hidden_texts) if is_cut else ()
        return storable(_without(text, self._hidden_texts, REDACTED, rest))[:max_chars]

    def texts(self, texts: Sequence[str], max_chars: int, *, cut: int = 0) -> Iterator[str]:
        """Each of them; together they are no longer than that.

        ``cut``: so many of the last ones a limit may have cut before.
        """
        left = max_chars
        for number, each in enumerate(texts):
            kept = self.text(each, left, is_cut=number >= len(texts) - cut)
            left -= len(kept)
            yield kept

    def is_hidden_in(self, value: str) -> bool:
        """Whether a secret stands in the value of a header."""
        content = value.encode("latin-1")
        return any(hidden.content in content for hidden in self._hidden)

    def headers(self, headers: Iterable[tuple[str, str]], max_chars: int) -> list[list[str]]:
        """Names and values, together no longer than that; a secret stands there in UTF-8 too."""
        kept: list[list[str]] = []
        left = max_chars
        for header in headers:
            kept.append([])
            for part in header:
                content = _without(part.encode("latin-1"), self._hidden, REDACTED.encode())
                kept[-1].append(storable(content.decode("latin-1"))[:left])
                left -= len(kept[-1][-1])
        return kept


def storable(text: str) -> str:
    """As every database takes it: PostgreSQL's text and jsonb hold neither NUL nor surrogates."""
    if text.isascii():
        return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode("utf-8")


class _Hidden(Generic[AnyStr]):
    """What is looked for, and what is worked out about it once it was found."""

    def __init__(self, content: AnyStr) -> None:
        self.content: AnyStr = content

    @cached_property
    def borders(self) -> list[int]:
        """Of each beginning: the length of the longest shorter one with which it ends."""
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
        """The least shift at which it overlaps itself; its length when it does not."""
        return len(self.content) - self.borders[-1]


def _in_json(secret: bytes) -> bytes:
    """The secret as it stands inside a JSON string."""
    return json.dumps(secret.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()


def _without(
    content: AnyStr,
    hidden: Sequence[_Hidden[AnyStr]],
    redacted: AnyStr,
    others: Iterable[tuple[int, int]] = (),
) -> AnyStr:
    """The content with a mark for each stretch of it that the hidden ones or others cover.

    Takes time in proportion to the content for each of them, whatever they are.
    """
    found = (stretch for each in hidden for stretch in _stretches(content, each))
    if not hidden:
        return content
    covered = sorted(islice(chain(found, others), MAX_STRETCHES + 1))
    if not covered:
        return content
    if len(covered) > MAX_STRETCHES:
        return redacted
    pieces: list[AnyStr] = []
    position = -1
    for start, end in covered:
        # Where stretches overlap or touch, one mark stands for all.
        if start > position:
            pieces += [content[max(position, 0) : start], redacted]
        position = max(position, end)
    pieces.append(content[position:])
    return content[:0].join(pieces)


def _cut_stretches(text: str, hidden: Iterable[_Hidden[str]]) -> Iterator[tuple[int, int]]:
    """The ends of the text with which hidden ones begin."""
    # What is left of a character that was cut.
    whole = text.rstrip("\ufffd")
    for each in hidden:
        length = _overlap(whole, each)
        if length >= SHORTEST_HIDDEN:
            yield len(whole) - length, len(text)


def _overlap(text: str, hidden: _Hidden[str]) -> int:
    """How many characters of the text's end are the beginning of the hidden one."""
    content = hidden.content
    end = text[-len(content) :]
    start = end.find(content[:SHORTEST_HIDDEN])
    if start < 0:
        return 0
    length = 0
    for character in end[start:]:
        while length and (length == len(content) or character != content[length]):
            length = hidden.borders[length - 1]
        length += character == content[length]
    return length


def _stretches(content: AnyStr, hidden: _Hidden[AnyStr]) -> Iterator[tuple[int, int]]:
    """Where it occurs, from start to end; a periodic run of occurrences is one stretch."""
    start = content.find(hidden.content)
    if start < 0:
        return
    length, period = len(hidden.content), hidden.period
    while start >= 0:
        end = start + length + _repeated(content, start + length, period)
        yield start, end
        # By less than that only occurrences could be shifted that belong to the run.
        start = content.find(hidden.content, end - min(length - period, period - 1))


def _repeated(content: AnyStr, position: int, period: int) -> int:
    """The length of what repeats, in whole periods, what stands before the position.

    Each comparison is twice as long as the one before it: most of the work is not done here.
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
