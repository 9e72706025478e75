"""Renders payloads and replies for display."""

from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from scripts_engine.admin.runs import json_tree

MAX_TEXT_CHARACTERS = 100_000
MAX_HEX_BYTES = 512
_HEX_COLUMNS = 16


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes for display: as text, or in hexadecimal if they are not UTF-8.

    JSON also has a ``tree`` or, if that would be too large, an ``indented`` text.
    """

    size: int
    text: str
    is_binary: bool = False
    is_cut: bool = False
    has_nul: bool = False
    """Each NUL is shown as U+2400, because HTML cannot contain one."""
    tree: SafeString | None = None
    indented: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether the text is complete and equals the bytes."""
        return not (self.is_binary or self.is_cut or self.has_nul)

    @property
    def html(self) -> SafeString:
        """The text for HTML, with CR escaped: a parser would turn it into LF."""
        return mark_safe(escape(self.text).replace("\r", "&#13;"))  # noqa: S308


def body_of(content: bytes | memoryview) -> Body:
    data = bytes(content)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        shown = _hex(data[:MAX_HEX_BYTES])
        return Body(len(data), shown, is_binary=True, is_cut=len(data) > MAX_HEX_BYTES)
    if len(text) > MAX_TEXT_CHARACTERS:
        text, has_nul = _visible(text[:MAX_TEXT_CHARACTERS])
        return Body(len(data), text, is_cut=True, has_nul=has_nul)
    value = json_tree.parse(text)
    if value is None:
        text, has_nul = _visible(text)
        return Body(len(data), text, has_nul=has_nul)
    tree = json_tree.tree(value)
    indented = "" if tree else json_tree.indented(text)[:MAX_TEXT_CHARACTERS]
    return Body(len(data), text, tree=tree, indented=indented)


def _visible(text: str) -> tuple[str, bool]:
    """Replaces NULs; the second value says whether there were any."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}"), "\0" in text


def _hex(data: bytes) -> str:
    """A hex dump: offset, sixteen bytes and ASCII per line."""
    rows = (data[start : start + _HEX_COLUMNS] for start in range(0, len(data), _HEX_COLUMNS))
    return "\n".join(
        f"{index * _HEX_COLUMNS:04x}  {row.hex(' '):<47}  "
        + "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        for index, row in enumerate(rows)
    )
