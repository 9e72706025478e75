"""What resolvers share: refusals of flows as GraphQL errors, a row by its id, times in UTC."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Model, QuerySet
from graphene.utils.str_converters import to_camel_case

from core.database.ids import parse_uuid
from core.errors import ForbiddenError, NotFoundError, RateLimitedError
from core.graphql.problem import GraphQLProblem


@contextmanager
def domain_errors(field: str = "") -> Iterator[None]:
    """Around a call of a flow: its refusals leave as ``GraphQLProblem``.

    ``field`` is for bad input that names none.
    """
    try:
        yield
    except ValidationError as error:
        raise bad_user_input(error, field) from None
    except ForbiddenError as error:
        raise GraphQLProblem("FORBIDDEN", str(error)) from None
    except RateLimitedError as error:
        raise GraphQLProblem(
            "RATE_LIMITED",
            "Too many attempts. Try again later.",
            retryAfter=error.retry_after_seconds,
        ) from None
    except NotFoundError as error:
        raise GraphQLProblem("NOT_FOUND", str(error)) from None


def bad_user_input(error: ValidationError, field: str = "") -> GraphQLProblem:
    """The first wrong field with its message; ``field`` is for errors that name none."""
    if hasattr(error, "error_dict"):
        name, messages = next(iter(error.message_dict.items()))
        field = field if name == NON_FIELD_ERRORS else to_camel_case(name)
    else:
        messages = error.messages
    return GraphQLProblem("BAD_USER_INPUT", " ".join(messages), field=field)


def required(value: str | None, field: str) -> str:
    """The argument, which the schema lets be null only to accept both kinds of variables."""
    if value is None:
        raise GraphQLProblem("BAD_USER_INPUT", "This argument is required.", field=field)
    return value


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


EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def as_utc(moment: datetime, field: str) -> datetime:
    """The moment in UTC; one without an offset is taken for UTC.

    Databases and Python end at different years: what is beyond all reason is BAD_USER_INPUT.
    """
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not EARLIEST <= aware <= LATEST:
        raise GraphQLProblem("BAD_USER_INPUT", "This time is out of range.", field=field)
    return aware.astimezone(UTC)
