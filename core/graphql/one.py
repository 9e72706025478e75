from typing import TypeVar

from django.db.models import Model, QuerySet

from core.database.ids import parse_uuid
from core.graphql.graphql_problem import GraphQLProblem

Row = TypeVar("Row", bound=Model)


def one(rows: QuerySet[Row], id: str) -> Row:
    """The row with that id. NOT_FOUND is the one answer for an unknown id, a malformed one and
    one that is not among the rows because it is somebody else's.
    """
    primary_key = parse_uuid(id)
    row = None if primary_key is None else rows.filter(pk=primary_key).first()
    if row is None:
        raise GraphQLProblem("NOT_FOUND", "There is no such object.")
    return row
