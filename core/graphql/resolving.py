"""Helpers for resolvers: GraphQL errors for refusals of flows, a row by its id, times in UTC."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Model, QuerySet
from graphene.utils.orderedtype import OrderedType
from graphene.utils.str_converters import to_camel_case

from core.database.ids import parse_uuid
from core.errors import ForbiddenError, LimitExceededError, NotFoundError, RateLimitedError
from core.graphql.problem import GraphQLCode, GraphQLProblem

Ordered = TypeVar("Ordered", bound=OrderedType)


@contextmanager
def domain_errors(field: str = "") -> Iterator[None]:
    """Turns the refusals of a flow into ``GraphQLProblem``.

    ``field`` is the field of errors that name none.
    """
    try:
        yield
    except LimitExceededError as error:
        raise GraphQLProblem(GraphQLCode.LIMIT_EXCEEDED, str(error.message)) from None
    except ValidationError as error:
        raise bad_user_input(error, field) from None
    except ForbiddenError as error:
        raise GraphQLProblem(GraphQLCode.FORBIDDEN, str(error)) from None
    except RateLimitedError as error:
        raise GraphQLProblem(
            GraphQLCode.RATE_LIMITED,
            "Too many attempts. Try again later.",
            retryAfter=error.retry_after_seconds,
        ) from None
    except NotFoundError as error:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, str(error)) from None


def bad_user_input(error: ValidationError, field: str = "") -> GraphQLProblem:
    """The first wrong field with its message; ``field`` is the field of errors that name none."""
    if hasattr(error, "error_dict"):
        name, messages = next(iter(error.message_dict.items()))
        field = field if name == NON_FIELD_ERRORS else to_camel_case(name)
    else:
        messages = error.messages
    return GraphQLProblem(GraphQLCode.BAD_USER_INPUT, " ".join(messages), field=field)


def required(value: str | None, field: str) -> str:
    """Refuse null, which the schema allows only so that nullable variables fit too."""
    if value is None:
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, "This argument is required.", field=field)
    return value


Row = TypeVar("Row", bound=Model)


def one(rows: QuerySet[Row], id: str) -> Row:
    """Return the row with that id.

    Unknown and malformed ids and those of other tenants raise the same NOT_FOUND, so that ids
    cannot be enumerated.
    """
    primary_key = parse_uuid(id)
    row = None if primary_key is None else rows.filter(pk=primary_key).first()
    if row is None:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return row


EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def as_utc(moment: datetime, field: str) -> datetime:
    """Convert the moment to UTC; without an offset it already is.

    Databases and Python end at different years, so far-off times are BAD_USER_INPUT.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not EARLIEST <= aware <= LATEST:
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, "This time is out of range.", field=field)
    return aware.astimezone(UTC)


def placed_here(field: Ordered) -> Ordered:
    """Returns a field that is defined elsewhere, for the place where this call stands.

    graphene sorts a type's fields by their creation, which depends on the order of imports.
    """
    field.reset_counter()
    return field
