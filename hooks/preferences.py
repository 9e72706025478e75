"""The ``Prefer`` header of a call (RFC 7240): whether the caller waits for the script."""

import re
from collections.abc import Sequence
from itertools import groupby

from hooks.request import Request
from scripts_engine.flows.rules_of_call import CallRules

MAX_CHARACTERS = 1000

# A name or value, a quoted value, or one of = ; and the comma.
_LEXEME = re.compile(r"""[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[^"\\]|\\.)*"|[=;,])[ \t]*""")
_SENDER_WITHOUT_PRESET = "hmac"


def prefers_no_wait(request: Request, rules: CallRules | None) -> bool:
    """Whether the caller asks for ``respond-async``.

    Ignored if the header is malformed, and for senders with a preset, which expect what the
    preset says.
    """
    header = request.header("Prefer")
    if header is None or (rules is not None and has_preset(rules)):
        return False
    return ["respond-async"] in _preferences(header)


def has_preset(rules: CallRules) -> bool:
    """Whether the sender is one that Moonhook knows, rather than the options of a hook."""
    return rules.sender is not None and rules.sender.preset != _SENDER_WITHOUT_PRESET


def _preferences(header: str) -> list[list[str]]:
    """Each preference as its name, or its name and value; empty if the header is malformed."""
    lexemes = _lexemes(header)
    found = []
    for preference in _split(lexemes, ","):
        name_and_value, *parameters = list(_split(preference, ";")) or [[]]
        if not all(map(_is_pair, (name_and_value, *parameters))):
            return []
        found.append([part.lower() for part in name_and_value if part not in ("=", '""')])
    return found


def _lexemes(header: str) -> list[str]:
    found, at = [], 0
    while at < len(header) <= MAX_CHARACTERS:
        lexeme = _LEXEME.match(header, at)
        if lexeme is None:
            return []
        found.append(lexeme[1])
        at = lexeme.end()
    return found


def _split(lexemes: Sequence[str], separator: str) -> list[list[str]]:
    """The stretches between separators; RFC 9110 allows empty ones, which are left out."""
    groups = groupby(lexemes, lambda each: each == separator)
    return [list(group) for is_separator, group in groups if not is_separator]


def _is_pair(lexemes: Sequence[str]) -> bool:
    """A name, with or without a value, which may be empty."""
    if not lexemes or lexemes[0] == "=" or lexemes[0].startswith('"'):
        return False
    return len(lexemes) == 1 or (lexemes[1] == "=" and len(lexemes) <= 3)
