"""Paginated lists: connection types, pages of rows and their cursors, newest first."""

import base64
import json
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import graphene
from django.core.exceptions import ValidationError
from django.db.models import BinaryField, Field, Model, Q, QuerySet
from graphql import GraphQLResolveInfo
from graphql.execution.values import get_argument_values

from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_peers, as_utc

DEFAULT_PAGE = 50
LARGEST_PAGE = 200
# Arguments that select a page; the others filter.
PAGING = frozenset({"first", "after"})
# Counts stop here, because counting further would read every row.
LARGEST_COUNT = 10_000
# A cursor of a time and a UUID has about 110 characters; one of a key of 256 bytes 690.
LONGEST_CURSOR = 1024


class PageInfo(graphene.ObjectType):
    """The end of a page, and whether more follows."""

    has_next_page = graphene.Boolean(required=True, description="Whether there are more objects.")
    end_cursor = graphene.String(description="The value of `after` for the next page.")


@dataclass(frozen=True, slots=True)
class Count:
    """The number of rows, up to ``LARGEST_COUNT``, and whether there are more."""

    total: int
    is_capped: bool


@dataclass(frozen=True)
class Page:
    """A page of a query set that is ordered by columns of one direction, the last one unique.

    ``info`` belongs to the field whose arguments filtered the rows; ``behind`` selects the rows
    after the cursor.
    """

    info: GraphQLResolveInfo
    rows: QuerySet[Any]
    first: int
    behind: Q

    @cached_property
    def _fetched(self) -> list[Model]:
        return as_peers(self.rows.filter(self.behind)[: self.first + 1])

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
        """The count, shared by all fields of the document with this name and these filters."""
        counts: dict[Hashable, Count] = self.info.context.counts
        key = _count_key(self.info)
        if key not in counts:
            counts[key] = count(self.rows)
        return counts[key]

    def _cursor(self, row: Model) -> str:
        return cursor_of([getattr(row, name) for name in _key_fields(self.rows)])


def cursor_of(key: list[Any]) -> str:
    """The cursor of the row with these values of the key fields."""
    texts = [_key_text(value) for value in key]
    return base64.urlsafe_b64encode(json.dumps(texts).encode()).decode()


def _key_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)


NEWEST_FIRST = "newest first"


def connection_of(
    node: type[graphene.ObjectType], order: str = NEWEST_FIRST
) -> type[graphene.ObjectType]:
    """The connection type of a node type: ``nodes``, ``pageInfo``, ``totalCount``, …"""
    name = f"{node._meta.name}Connection"
    attributes = {
        "nodes": graphene.Field(
            graphene.NonNull(graphene.List(graphene.NonNull(node))),
            description=f"The page, {order}.",
        ),
        "page_info": graphene.Field(graphene.NonNull(PageInfo), description="The end of the page."),
        "total_count": graphene.Int(
            required=True,
            description=f"The total number of objects, counted up to {LARGEST_COUNT:,}.",
        ),
        "total_count_is_capped": graphene.Boolean(
            required=True, description="Whether there are more than `totalCount`."
        ),
    }
    meta = type("Meta", (), {"description": f"A page of {node._meta.name} objects."})
    return type(name, (graphene.ObjectType,), {**attributes, "Meta": meta})


def connection_field(
    connection: type[graphene.ObjectType],
    description: str,
    order: str = NEWEST_FIRST,
    **filters: graphene.Scalar,
) -> graphene.Field:
    """A list field with ``first``, ``after`` and the filters as arguments."""
    return graphene.Field(
        graphene.NonNull(connection),
        description=f"{description} {order.capitalize()}.",
        args={
            "first": graphene.Int(
                default_value=DEFAULT_PAGE,
                description=f"Number of objects, at most {LARGEST_PAGE}.",
            ),
            "after": graphene.String(description="The `endCursor` of the previous page."),
            **filters,
        },
    )


def page_of(
    info: GraphQLResolveInfo,
    rows: QuerySet[Any],
    first: int | None,
    after: str | None,
    *,
    argument: str = "after",
) -> Page:
    """The page of ``first`` rows after the cursor. Raises ``GraphQLProblem`` for bad arguments.

    ``argument`` is the name of that with the cursor.
    """
    first = DEFAULT_PAGE if first is None else first
    if not 1 <= first <= LARGEST_PAGE:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, f"Ask for 1 to {LARGEST_PAGE} at a time.", field="first"
        )
    behind = Q() if after is None else _behind(rows, key_of(rows, after, argument))
    return Page(info, rows, first, behind)


def count(rows: QuerySet[Any]) -> Count:
    """Count the rows, reading at most ``LARGEST_COUNT + 1`` of them.

    An order by id is kept, so that PostgreSQL reads the page's index instead of the whole table.
    Any other order is dropped, because it would sort all rows first.
    """
    if _key_fields(rows) != ["id"]:
        rows = rows.order_by()
    counted = rows.values("pk")[: LARGEST_COUNT + 1].count()
    return Count(min(counted, LARGEST_COUNT), is_capped=counted > LARGEST_COUNT)


def _count_key(info: GraphQLResolveInfo) -> Hashable:
    """The field and its filters, which determine the rows."""
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


def _behind(rows: QuerySet[Any], key: list[Any]) -> Q:
    """Selects the rows after that of the key in the order of its fields, all of one direction."""
    ordering = rows.query.order_by or rows.model._meta.ordering
    further = "lt" if str(ordering[0]).startswith("-") else "gt"
    names = _key_fields(rows)
    behind, equal = Q(), Q()
    for name, value in zip(names, key, strict=True):
        behind |= equal & Q(**{f"{name}__{further}": value})
        equal &= Q(**{name: value})
    # Alternatives alone would be looked for from the first row of the index.
    return behind & Q(**{f"{names[0]}__{further}e": key[0]}) if len(names) > 1 else behind


def key_of(rows: QuerySet[Any], cursor: str, argument: str) -> list[Any]:
    """The key of the cursor's row. All malformed cursors raise the same error."""
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
            GraphQLCode.BAD_USER_INPUT, "This is not the cursor of an answer.", field=argument
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
    """Parse a value; out of its column's range it raises."""
    if isinstance(field, BinaryField):
        return bytes.fromhex(text)
    value = field.clean(text, None)
    return as_utc(value, "after") if isinstance(value, datetime) else value
