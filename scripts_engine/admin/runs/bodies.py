"""Renders payloads and replies for display."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

MAX_TEXT_CHARACTERS = 100_000
MAX_HEX_BYTES = 512
_HEX_COLUMNS = 16
MAX_NODES = 2_000
MAX_DEPTH = 32
_OPEN_CHILDREN = 100
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


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
    value = _parsed(text)
    if value is None:
        text, has_nul = _visible(text)
        return Body(len(data), text, has_nul=has_nul)
    tree = _tree_of(value)
    indented = "" if tree else indented_json(text)[:MAX_TEXT_CHARACTERS]
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


class _Number(str):
    """A number as written, which keeps large integers and trailing zeros."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """An object's members in order, including repeated names."""


class _TooLargeError(Exception):
    pass


def _parsed(text: str) -> Any:
    """Parses an object or array for ``tree``; ``None`` for any other text."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[")):
        return None
    try:
        return json.loads(
            text,
            object_pairs_hook=_Members,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        return None


def _tree_of(value: Any) -> SafeString | None:
    """Collapsible nested lists; ``None`` if there are too many nodes or levels."""
    try:
        return format_html('<ul class="mh-json">{}</ul>', _Renderer().item(value, "", 0))
    except _TooLargeError:
        return None


def indented_json(text: str) -> str:
    """Puts each member on a line of its own and changes nothing but white space."""
    lines: list[str] = []
    depth, before = 0, ""
    for part in _TOKEN.findall(text):
        if part in "]}":
            depth -= 1
        if (before and before in "[{,") if part not in "]}" else before not in "[{":
            # Limits the indentation of deep levels, so that the text cannot grow without bound.
            lines.append("\n" + "  " * min(depth, MAX_DEPTH))
        lines.append(": " if part == ":" else part)
        if part in "[{":
            depth += 1
        before = part
    return "".join(lines)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


class _Renderer:
    def __init__(self) -> None:
        self._nodes = 0

    def item(self, value: Any, name: SafeString | str, depth: int) -> SafeString:
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise _TooLargeError
        if isinstance(value, list) and value:
            return self._branch(value, name, depth)
        return format_html("<li>{}{}</li>", name, _leaf(value))

    def _branch(self, value: list[Any], name: SafeString | str, depth: int) -> SafeString:
        if isinstance(value, _Members):
            sign, noun, children = "{…}", "member", self._members(value, depth)
        else:
            sign, noun, children = "[…]", "item", self._elements(value, depth)
        count = f"{len(value)} {noun}{'' if len(value) == 1 else 's'}"
        is_open = depth == 0 or len(value) <= _OPEN_CHILDREN
        return format_html(
            '<li><details{}><summary>{}{} <span class="mh-quiet">{}</span></summary>'
            "<ul>{}</ul></details></li>",
            SafeString(" open") if is_open else "",
            name,
            sign,
            count,
            children,
        )

    def _members(self, members: _Members, depth: int) -> SafeString:
        seen: set[str] = set()
        items = []
        for name, value in members:
            mark = SafeString(' <span class="mh-quiet">repeated</span>') if name in seen else ""
            label = format_html('<span class="mh-json-name">{}</span>{}: ', _quoted(name), mark)
            items.append(self.item(value, label, depth + 1))
            seen.add(name)
        return _joined(items)

    def _elements(self, elements: list[Any], depth: int) -> SafeString:
        return _joined([self.item(element, "", depth + 1) for element in elements])


def _joined(items: list[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((item,) for item in items))


def _leaf(value: Any) -> SafeString:
    kind, text = _shown(value)
    return format_html('<span class="mh-json-{}">{}</span>', kind, text)


def _shown(value: Any) -> tuple[str, str]:
    if isinstance(value, _Members):
        return "empty", "{}"
    if isinstance(value, list):
        return "empty", "[]"
    if isinstance(value, _Number):
        return "number", value
    if isinstance(value, str):
        return "string", _quoted(value)
    return "word", {None: "null", True: "true", False: "false"}[value]


def _quoted(text: str) -> str:
    """Quotes a string as JSON and escapes lone surrogates, which cannot be encoded."""
    written = json.dumps(text, ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
