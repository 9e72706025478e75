"""The shape of the Lua reference."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A function or value that scripts can use.

    ``explanation`` and ``limits`` are short Markdown: code stands in backticks. ``insert`` is the
    text put into the editor; the name when empty. ``words`` are further words to find it by.
    """

    name: str
    signature: str
    explanation: str
    example: str = ""
    limits: str = ""
    insert: str = ""
    words: str = ""


class Section(NamedTuple):
    """Entries that form one table of docs/lua.md."""

    title: str
    entries: tuple[Entry, ...]
