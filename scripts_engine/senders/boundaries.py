"""The boundaries between the fields of a signed text.

A signature covers the text, not its division into fields. So where bytes can move over a boundary,
one signature holds for several calls: with other ids, times, URLs or bodies.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

PLACEHOLDER = re.compile(r"(\{(?:body|timestamp|id|method|url)\})")
# Of a fixed form: a time within its tolerance has as many characters as any other, and no method
# that runs scripts is the beginning or the end of another.
_FIXED = frozenset({"{timestamp}", "{method}"})
SIGNED_METHODS = ("GET", "POST")


class Boundary(NamedTuple):
    """Two fields that follow each other, and the text between them."""

    left: str
    separator: str
    right: str
    is_before_body: bool

    @property
    def is_open(self) -> bool:
        """Whether nothing tells where the first field ends.

        A signed text is read from both ends to the body, whose extent then is known.
        """
        outer = self.left if self.is_before_body else self.right
        return not self.separator and (outer not in _FIXED or "{id}" in (self.left, self.right))


@lru_cache(maxsize=1024)
def boundaries_of(template: str) -> tuple[Boundary, ...]:
    parts = PLACEHOLDER.split(template)
    fields, literals = parts[1::2], parts[2:-1:2]
    body = fields.index("{body}") if "{body}" in fields else len(fields)
    return tuple(
        Boundary(left, separator, right, place < body)
        for place, (left, separator, right) in enumerate(
            zip(fields, literals, fields[1:], strict=False)
        )
    )


def crossed_separator(template: str, free_texts: Mapping[str, str]) -> tuple[str, str] | None:
    """The field, and the separator beside it, that make the text readable in another way.

    ``free_texts`` are the parts of fields that a caller chooses, by placeholder.
    """
    for left, separator, right, _ in boundaries_of(template):
        if not separator:
            continue
        text = free_texts.get(left)
        if text is not None and (text + separator).find(separator) != len(text):
            return left, separator
        text = free_texts.get(right)
        if text is not None and (separator + text).rfind(separator) != 0:
            return right, separator
    return None
