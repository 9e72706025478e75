"""Finds the libraries that a Lua source requires by a literal name, and the secrets that it reads.

Reads tokens as Lua 5.4 does (manual, 3.1), without parsing: a call counts whatever scope it is in,
but not of a field or a method of that name.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

# Possessive, so that an unclosed string costs linear time.
_SPACE = r"[ \t\r\n\f\v]"
_LINE_END = r"(?:\r\n|\n\r|\n|\r)"
_TOKEN = re.compile(
    rf"""
      (?P<space> {_SPACE}++ | --(?!\[=*\[)[^\r\n]*+ )
    | (?P<opening> (?:--)?+ \[ (?P<level>=*+) \[ )
    | (?P<name> [A-Za-z_][A-Za-z0-9_]*+ )
    | (?P<number> [0-9][A-Za-z0-9_.]*+ )
    | (?P<string> (?P<quote>["'])
        (?: (?!(?P=quote))[^\\\r\n] | \\z{_SPACE}*+ | \\{_LINE_END} | \\. )*+ (?P=quote) )
    | (?P<other> \.\.\.?+ | :: | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_ENDS = re.compile(_LINE_END)
_ESCAPE = re.compile(
    rf"""\\(?: z{_SPACE}* | (?P<line>{_LINE_END}) | x(?P<hex>[0-9A-Fa-f]{{2}})
      | u\{{(?P<code>[0-9A-Fa-f]{{1,8}})\}} | (?P<decimal>[0-9]{{1,3}}) | (?P<char>.) )""".encode(),
    re.VERBOSE | re.DOTALL,
)
# What comes before a name that is not that of a global value.
_NOT_GLOBAL = frozenset({".", ":", "function"})
_CHARACTERS = dict(zip(b"abfnrtv", b"\a\b\f\n\r\t\v", strict=True))


class Requirement(NamedTuple):
    name: str
    """As Lua reads it; bytes that are not UTF-8 are replaced."""
    line: int
    """Counts from 1."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def find_requirements(source: str) -> list[Requirement]:
    """The literal names in the order of the source, repeated ones too.

    Ends at the first token that Lua would not accept.
    """
    if "require" not in source:
        return []
    found: list[Requirement] = []
    line, counted_to = 1, 0
    for name, start in _literal_names(source, "require"):
        line += len(_LINE_ENDS.findall(source, counted_to, start))
        counted_to = start
        found.append(Requirement(name, line))
    return found


def find_secrets(source: str) -> set[str]:
    """The literal names by which the source reads secrets."""
    if "secrets" not in source:
        return set()
    return {name for name, _ in _literal_names(source, "secrets", ".", "get")}


def _literal_names(source: str, *called: str) -> Iterator[tuple[str, int]]:
    """Each literal argument of a call of these tokens, with the place of the first of them."""
    nothing = _Token("other", "", 0)
    tokens = [nothing, *_tokens(source), *([nothing] * (len(called) + 2))]
    for at, (before, token) in enumerate(pairwise(tokens), start=1):
        if token.kind != "name" or token.text != called[0] or before.text in _NOT_GLOBAL:
            continue
        after = at + len(called)
        if tuple(each.text for each in tokens[at:after]) != called:
            continue
        argument = tokens[after]
        if argument.text == "(" and tokens[after + 2].text in {")", ","}:
            argument = tokens[after + 1]
        if argument.kind == "string":
            yield _decoded(argument.text), token.start
        elif argument.kind == "long":
            yield _LINE_ENDS.sub("\n", argument.text).removeprefix("\n"), token.start


def _tokens(source: str) -> Iterator[_Token]:
    """Without spaces and comments. A long string is its content, another one has its quotes."""
    at = 0
    while match := _TOKEN.match(source, at):
        kind, text, at = str(match.lastgroup), match[0], match.end()
        if match["quote"] is not None:
            kind = "string"
        elif match["level"] is not None:
            end = source.find(f"]{match['level']}]", at)
            if end < 0:
                return
            kind, text = "space" if text.startswith("-") else "long", source[at:end]
            at = end + len(match["level"]) + 2
        elif text in {'"', "'"}:
            return
        if kind != "space":
            yield _Token(kind, text, match.start())


def _decoded(string: str) -> str:
    text = string[1:-1].encode("utf-8", "replace")
    return _ESCAPE.sub(_character, text).decode("utf-8", "replace")


def _character(escape: re.Match[bytes]) -> bytes:
    if escape["line"]:
        return b"\n"
    if escape["hex"]:
        return bytes([int(escape["hex"], 16)])
    if escape["decimal"]:
        return bytes([min(int(escape["decimal"]), 255)])
    if escape["code"]:
        code = int(escape["code"], 16)
        return chr(code).encode("utf-8", "replace") if code <= 0x10FFFF else b"?"
    if escape["char"]:
        return bytes([_CHARACTERS.get(escape["char"][0], escape["char"][0])])
    return b""
