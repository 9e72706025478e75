"""Feeds: rows in the order in which they were committed, for programs that follow them."""

import uuid
from typing import Any, NamedTuple

import graphene
from django.db.models import Model, QuerySet
from graphql import GraphQLResolveInfo

from core.database.commit_order import settled_before
from core.graphql.connection import LARGEST_PAGE, cursor_of, key_of, page_of

DEFAULT_FEED = 100
_LAST_ID = uuid.UUID(int=2**128 - 1)


class Feed(NamedTuple):
    nodes: list[Model]
    cursor: str
    has_more: bool


def settled(rows: QuerySet[Any], number: str) -> QuerySet[Any]:
    """Those of the rows before which no other can appear, the first to be committed first.

    ``number`` is their ``CommitNumber``. Filter afterwards.
    """
    return _below(rows, number, settled_before(rows, number))


def _below(rows: QuerySet[Any], number: str, below: int) -> QuerySet[Any]:
    return rows.filter(**{f"{number}__lt": below}).order_by(number, "id")


def feed_of(
    info: GraphQLResolveInfo,
    rows: QuerySet[Any],
    filtered: QuerySet[Any],
    number: str,
    *,
    first: int | None,
    cursor: str | None,
) -> Feed:
    """The rows after the cursor, of ``filtered``, which selects from ``rows``.

    The next cursor is behind all that was looked at, whether the filter has let it through or not.
    Raises ``GraphQLProblem`` for bad arguments.
    """
    below = settled_before(rows, number)
    found = _below(filtered, number, below)
    size = DEFAULT_FEED if first is None else first
    page = page_of(info, found, size, cursor, argument="cursor")
    nodes, has_more = page.nodes, page.page_info.has_next_page
    if has_more:
        return Feed(nodes, str(page.page_info.end_cursor), has_more)
    end = _end(below)
    if cursor is not None:
        # A node may have read the number before the one that answered last.
        end = max(end, key_of(found, cursor, "cursor"))
    return Feed(nodes, cursor_of(end), has_more)


def end_of_feed(rows: QuerySet[Any], number: str) -> str:
    """The cursor behind all rows that are settled now."""
    return cursor_of(_end(settled_before(rows, number)))


def _end(below: int) -> list[Any]:
    return [below - 1, _LAST_ID]


def feed_type(node: type[graphene.ObjectType]) -> type[graphene.ObjectType]:
    """The type of a feed of that node type."""
    name = f"{node._meta.name}Feed"
    attributes = {
        "nodes": graphene.Field(
            graphene.NonNull(graphene.List(graphene.NonNull(node))),
            description="In the order in which they were committed.",
        ),
        "cursor": graphene.String(
            required=True, description="The `cursor` to go on with, also if there are no nodes."
        ),
        "has_more": graphene.Boolean(
            required=True, description="Whether there are more now; otherwise ask again later."
        ),
    }
    meta = type("Meta", (), {"description": f"{node._meta.name} objects, to be followed."})
    return type(name, (graphene.ObjectType,), {**attributes, "Meta": meta})


def feed_arguments() -> dict[str, Any]:
    return {
        "cursor": graphene.String(
            description="The `cursor` of the last answer. Omit to begin with the oldest that is "
            "kept."
        ),
        "first": graphene.Int(
            default_value=DEFAULT_FEED,
            description=f"Number of objects, at most {LARGEST_PAGE}.",
        ),
    }
