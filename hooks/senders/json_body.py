"""JSON out of strangers' bodies: bounded in depth, and an error never escapes."""

import json
import re
from typing import Any, NoReturn

from hooks.senders.contract import MAX_EVENT_ID_CHARS

MAX_DEPTH = 128

# An unterminated string reaches to the end, so that each byte is read once.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_AS_ARRAYS = bytes.maketrans(b"{}", b"[]")
_RUN = re.compile(rb"\[++|\]++")
_REMOVED_LEVELS = 8
_COLON_OR_BACKSLASH, _ESCAPED = re.compile(r"[:\\]"), r"\\\g<0>"
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class InvalidJSONError(ValueError):
    """The bytes are not JSON in UTF-8, or are nested too deeply."""


def parse_json(content: bytes) -> Any:
    """Returns the parsed document (RFC 8259). Raises ``InvalidJSONError`` for all others."""
    if not _is_nested_within(MAX_DEPTH, content):
        raise InvalidJSONError(f"not JSON, or nested deeper than {MAX_DEPTH}")
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except ValueError:  # also UnicodeDecodeError, and integers of more than 4,300 digits
        raise InvalidJSONError("not JSON in UTF-8") from None


def at_pointer(document: Any, pointer: str) -> Any:
    """The value at a JSON pointer (RFC 6901), or None."""
    value = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def id_at(document: Any, pointers: tuple[str, ...]) -> str | None:
    """The event id at the pointers, its parts joined by ":"; None unless every part is there.

    A colon within a part that another part follows is escaped by a backslash, as is a backslash.
    Otherwise two events could have one id.
    """
    parts = [_id_text(at_pointer(document, pointer)) or "" for pointer in pointers]
    if not all(parts):
        return None
    *before, last = parts
    joined = "".join(f"{_COLON_OR_BACKSLASH.sub(_ESCAPED, part)}:" for part in before) + last
    return joined if len(joined) <= MAX_EVENT_ID_CHARS else None


def _id_text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        # Far below the 4,300 digits from which on str() raises.
        return str(value) if value.bit_length() <= 512 else None
    # Not printable: NUL and lone surrogates, which cannot be stored, and control characters.
    return value if isinstance(value, str) and value.isprintable() else None


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 7 and (name == "0" or name[0] != "0")


def _is_nested_within(depth: int, content: bytes) -> bool:
    """Whether brackets are balanced and not nested more deeply, found without parsing.

    The innermost levels are removed at the speed of C and the runs that remain are counted: a loop
    over a MiB of brackets would take half a second, before the signature is known to hold.
    """
    if content.count(b"[") + content.count(b"{") <= depth:
        return True
    brackets = _STRING.sub(b"", content).translate(_AS_ARRAYS, _NOT_BRACKETS)
    for _ in range(_REMOVED_LEVELS):
        brackets = brackets.replace(b"[]", b"")
    # What remains has contained every level that was removed.
    level = 0
    for run in _RUN.finditer(brackets):
        length = run.end() - run.start()
        level += length if brackets[run.start()] == ord("[") else -length
        if not 0 <= level <= depth - _REMOVED_LEVELS:
            return False
    return level == 0


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
