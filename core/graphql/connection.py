"""Lists of any length: a page of nodes, newest first, and where the next one begins."""

import base64
import json
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from graphql import GraphQLResolveInfo
from graphql.execution.values import get_argument_values

from core.graphql.problem import GraphQLProblem
from core.graphql.resolving import as_utc

DEFAULT_PAGE = 50
LARGEST_PAGE = 200
# The arguments of a list that choose a page of it, not what is in it.
PAGING = frozenset({"first", "after"})
# Up to here a count is exact. Counting further would read every row there is.
LARGEST_COUNT = 10_000
# Ours have about 110: a time and a UUID.
LONGEST_CURSOR = 512


class PageInfo(graphene.ObjectType):
    """Where a page ends."""

    has_next_page = graphene.Boolean(required=True, description="Whether there is more.")
    end_cursor = graphene.String(description="Pass it as `after` for the next page.")


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows there are, to ``LARGEST_COUNT``, and whether there are more."""

    total: int
    is_capped: bool


@dataclass(frozen=True)
class Page:
    """A page of a query set that is ordered by descending columns, the last one unique.

    ``info`` is that of the field whose arguments have chosen the rows.
    """

    info: GraphQLResolveInfo
    rows: QuerySet[Any]
    first: int
    behind: Q

    @cached_property
    def _fetched(self) -> list[Model]:
        return list(self.rows.filter(self.behind)[: self.first + 1])

    @property
    def nodes(self) -> list[Model]:
        return self._fetched[: self.first]

    @property
    def page_info(self) -> PageInfo:
        return PageInfo(
            has_next_page=len(self._fetched) > self.first,
            end_cursor=self._cursor(self.nodes[-1]) if self.nodes else None,
        )

    @property
    def total_count(self) -> int:
        return self._count.total

    @property
    def total_count_is_capped(self) -> bool:
        return self._count.is_capped

    @cached_property
    def _count(self) -> Count:
        """Counted once a document for all fields of that name and those filters."""
        counts: dict[Hashable, Count] = self.info.context.counts
        key = _count_key(self.info)
        if key not in counts:
            counts[key] = count(self.rows)
        return counts[key]

    def _cursor(self, row: Model) -> str:
        values = [getattr(row, name) for name in _key_fields(self.rows)]
        texts = [v.isoformat() if isinstance(v, datetime) else str(v) for v in values]
        return base64.urlsafe_b64encode(json.dumps(texts).encode()).decode()


def connection_of(node: type[graphene.ObjectType]) -> type[graphene.ObjectType]:
    """The connection type of a node type: ``nodes``, ``pageInfo``, ``totalCount``, …"""
    name = f"{node._meta.name}Connection"
    attributes = {
        "nodes": graphene.Field(
            graphene.NonNull(graphene.List(graphene.NonNull(node))),
            description="The page, newest first.",
        ),
        "page_info": graphene.Field(graphene.NonNull(PageInfo), description="Where it ends."),
        "total_count": graphene.Int(
            required=True,
            description=f"How many there are in all, counted to {LARGEST_COUNT:,}.",
        ),
        "total_count_is_capped": graphene.Boolean(
            required=True, description="Whether there are more than `totalCount` says."
        ),
    }
    meta = type("Meta", (), {"description": f"A page of {node._meta.name} objects."})
    return type(name, (graphene.ObjectType,), {**attributes, "Meta": meta})


def connection_field(
    connection: type[graphene.ObjectType], description: str, **filters: graphene.Scalar
) -> graphene.Field:
    """A list field with ``first``, ``after`` and the filters as arguments."""
    return graphene.Field(
        graphene.NonNull(connection),
        description=f"{description} Newest first.",
        args={
            "first": graphene.Int(
                default_value=DEFAULT_PAGE, description=f"How many; at most {LARGEST_PAGE}."
            ),
            "after": graphene.String(description="The endCursor of the page before."),
            **filters,
        },
    )


def page_of(
    info: GraphQLResolveInfo, rows: QuerySet[Any], first: int | None, after: str | None
) -> Page:
    first = DEFAULT_PAGE if first is None else first
    if not 1 <= first <= LARGEST_PAGE:
        raise GraphQLProblem(
            "BAD_USER_INPUT", f"Ask for 1 to {LARGEST_PAGE} at a time.", field="first"
        )
    return Page(info, rows, first, Q() if after is None else _behind(rows, after))


def count(rows: QuerySet[Any]) -> Count:
    """Reads ``LARGEST_COUNT`` rows and one at the most, of those that fit.

    In the order of the ids where that is the page's order: then the page's index is read, and
    PostgreSQL is not tempted to look for the first few in the whole table. Any other order would
    sort all rows before the first is counted.
    """
    if _key_fields(rows) != ["id"]:
        rows = rows.order_by()
    counted = rows.values("pk")[: LARGEST_COUNT + 1].count()
    return Count(min(counted, LARGEST_COUNT), is_capped=counted > LARGEST_COUNT)


def _count_key(info: GraphQLResolveInfo) -> Hashable:
    """The field and its filters: what decides which rows there are."""
    field = info.parent_type.fields[info.field_name]
    arguments = get_argument_values(field, info.field_nodes[0], info.variable_values)
    filters = {(name, value) for name, value in arguments.items() if name not in PAGING}
    return info.field_name, frozenset(filters)


def _key_fields(rows: QuerySet[Any]) -> list[str]:
    ordering = rows.query.order_by or rows.model._meta.ordering
    return [str(name).removeprefix("-") for name in ordering]


def _key_field(rows: QuerySet[Any], name: str) -> Any:
    annotation = rows.query.annotations.get(name)
    return rows.model._meta.get_field(name) if annotation is None else annotation.output_field


def _behind(rows: QuerySet[Any], cursor: str) -> Q:
    """The rows that come after the cursor's in descending order of the key fields."""
    behind, equal = Q(), Q()
    for name, value in zip(_key_fields(rows), _parse(rows, cursor), strict=True):
        behind |= equal & Q(**{f"{name}__lt": value})
        equal &= Q(**{name: value})
    return behind


def _parse(rows: QuerySet[Any], cursor: str) -> list[Any]:
    """The key of the row that the cursor names. Whatever is wrong with it, the error is one."""
    try:
        return _key(rows, cursor)
    except (
        ValueError,
        TypeError,
        OverflowError,
        RecursionError,
        ValidationError,
        GraphQLProblem,
    ):
        raise GraphQLProblem(
            "BAD_USER_INPUT", "This is not the endCursor of a page.", field="after"
        ) from None


def _key(rows: QuerySet[Any], cursor: str) -> list[Any]:
    if len(cursor) > LONGEST_CURSOR:
        raise ValueError("the cursor is too long")
    texts = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError("the cursor is not a list of strings")
    fields = [_key_field(rows, name) for name in _key_fields(rows)]
    return [_key_value(field, text) for field, text in zip(fields, texts, strict=True)]


def _key_value(field: Field[Any, Any], text: str) -> Any:
    """The value within the range of its column."""
    value = field.clean(text, None)
    return as_utc(value, "after") if isinstance(value, datetime) else value
