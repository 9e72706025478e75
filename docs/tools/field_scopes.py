"""Writes the tables of scopes into docs/api.md from the tables that the server asks.

    python -m docs.tools.field_scopes

The tables stand between lines that mark them; the prose stays as it is.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import django
from django.apps import apps
from graphql import GraphQLObjectType

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if not apps.ready:
    django.setup()

from accounts.graphql.field_scopes import ANY_KEY, PROGRAMS
from accounts.scopes import MEANINGS, Role, Scope, names_of
from config.api.admin_schema import schema
from core.graphql.field_needs import Needs

PAGE = Path(__file__).resolve().parents[1] / "api.md"

# The beginning names its table; the end is the same for all.
_MARKED = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- end of generated -->)", re.DOTALL)
_GRAPH = schema.graphql_schema
_ROOTS = ("Query", "Mutation")


def tables() -> dict[str, str]:
    """Every table of the page in Markdown, by the name that its mark gives."""
    return {
        "scopes": _table(
            ("`Scope`", "opens"), ((f"`{scope.value}`", MEANINGS[scope]) for scope in Scope)
        ),
        "roles": _table(
            ("`Role`", "scopes"),
            ((f"`{role.label}`", _code(names_of(role.scopes)) or "none") for role in Role),
        ),
        "queries and mutations": _table(("scope", "queries and mutations"), _roots()),
        "fields of types": _table(("type", "scope", "other fields"), _types()),
    }


def names_of_tables(page: str) -> list[str]:
    """The names of the tables that the page marks, in its order."""
    return [found[1] for found in _MARKED.findall(page)]


def with_tables(page: str) -> str:
    """Returns the page with its marked tables replaced; raises ``KeyError`` for an unknown name."""
    made = tables()
    return _MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[4]}", page)


def _roots() -> Iterator[tuple[str, str]]:
    by_needs: dict[str, list[str]] = {}
    for on in _ROOTS:
        for field in _object(on).fields:
            by_needs.setdefault(_words(on, field), []).append(field)
    order = [ANY_KEY, *(f"`{scope.value}`" for scope in Scope)]
    first = {words: order.index(words.split(" and ")[0].split(";")[0]) for words in by_needs}
    for words in sorted(by_needs, key=lambda words: (first[words], words)):
        yield words, " ".join(f"`{field}`" for field in by_needs[words])


def _types() -> Iterator[tuple[str, str, str]]:
    for name in sorted(_GRAPH.type_map):
        each = _GRAPH.type_map[name]
        is_page = name.endswith("Connection") or name == "PageInfo"
        if not isinstance(each, GraphQLObjectType) or name.startswith("__") or is_page:
            continue
        if name not in _ROOTS:
            yield _row(name, list(each.fields))


def _row(name: str, fields: list[str]) -> tuple[str, str, str]:
    by_words: dict[str, list[str]] = {}
    for field in fields:
        by_words.setdefault(_words(name, field), []).append(field)
    most = max(by_words, key=lambda words: len(by_words[words]))
    others = (
        f"{words}: {' '.join(f'`{field}`' for field in by_words[words])}"
        for words in by_words
        if words != most
    )
    return f"`{name}`", most, "; ".join(others)


def _words(on: str, field: str) -> str:
    needed = PROGRAMS.of(on, field)
    if needed is None:
        raise LookupError(f"{on}.{field} names no scope")
    return _listed(needed.names) + _by_argument(on, field, needed)


def _listed(names: frozenset[str]) -> str:
    if ANY_KEY in names:
        return ANY_KEY
    return " and ".join(_code(scope.value) for scope in Scope if scope.value in names)


def _by_argument(on: str, field: str, needed: Needs) -> str:
    known = _object(on).fields[field].args
    return "".join(
        f"; with `{argument}` also {_listed(names)}"
        for argument, names in needed.by_argument.items()
        if argument in known
    )


def _object(name: str) -> GraphQLObjectType:
    found = _GRAPH.type_map[name]
    if not isinstance(found, GraphQLObjectType):
        raise TypeError(name)
    return found


def _code(names: str) -> str:
    return " ".join(f"`{name}`" for name in names.split())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
