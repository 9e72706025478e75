"""Helpers for resolvers: refusals of flows, rows by id and together, times, added fields."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db.models import Model, QuerySet
from graphene import Field
from graphene.types.utils import yank_fields_from_attrs
from graphene.utils.orderedtype import OrderedType
from graphene.utils.str_converters import to_camel_case
from graphql import GraphQLResolveInfo

from core.database.ids import parse_uuid
from core.errors import (
    ConflictError,
    ForbiddenError,
    LimitExceededError,
    NotFoundError,
    RateLimitedError,
)
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.origin import Origin, origin_of

Ordered = TypeVar("Ordered", bound=OrderedType)
Row = TypeVar("Row", bound=Model)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
_PEERS = "_peers"
_added: defaultdict[Any, dict[str, Any]] = defaultdict(dict)


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
        raise GraphQLProblem(GraphQLCode.FORBIDDEN, str(error), **error.extensions) from None
    except RateLimitedError as error:
        raise GraphQLProblem(
            GraphQLCode.RATE_LIMITED,
            "Too many attempts. Try again later.",
            retryAfter=error.retry_after_seconds,
        ) from None
    except ConflictError as error:
        raise GraphQLProblem(GraphQLCode.CONFLICT, str(error), **error.extensions) from None
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


def caller_origin(info: GraphQLResolveInfo) -> Origin:
    """Where the request comes from, for the flows."""
    return origin_of(info.context.request)


def required(value: str | None, field: str) -> str:
    """Refuse null, which the schema allows only so that nullable variables fit too."""
    if value is None:
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, "This argument is required.", field=field)
    return value


def one(rows: QuerySet[Row], id: str) -> Row:
    """Return the row with that id.

    Unknown ids and those of other tenants raise the same NOT_FOUND, so that ids cannot be
    enumerated.
    """
    row = rows.filter(pk=id_of(rows.model, id)).first()
    if row is None:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return row


def id_of(model: type[Model], text: str) -> uuid.UUID:
    """Parse the id of a row of the model. A malformed one raises NOT_FOUND, which says so."""
    primary_key = parse_uuid(text)
    if primary_key is None:
        raise malformed_id(str(model._meta.verbose_name))
    return primary_key


def malformed_id(kind: str) -> GraphQLProblem:
    """The problem of text that cannot be the id of such an object."""
    return GraphQLProblem(
        GraphQLCode.NOT_FOUND, f"There is no such {kind}: its id is a UUID, and this is not one."
    )


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


def as_peers(rows: Iterable[Row]) -> list[Row]:
    """Makes the rows peers of each other."""
    peers = list(rows)
    for row in peers:
        setattr(row, _PEERS, peers)
    return peers


def peers_of(row: Row) -> Sequence[Row]:
    """The row itself and those that were loaded with it."""
    peers: Sequence[Row] = getattr(row, _PEERS, [row])
    return peers


def extend(target: Any) -> Callable[[type], type]:
    """Adds the fields and resolvers of the decorated class to the type.

    Call it before the schema is built, which reads the fields.
    """

    def add(extension: type) -> type:
        members = vars(extension)
        fields, added = target._meta.fields, _added[target]
        added |= yank_fields_from_attrs(dict(members), _as=Field, sort=False)
        # By name, whatever the order in which the apps are imported.
        for name in sorted(added):
            fields.pop(name, None)
            fields[name] = added[name]
        for name, member in members.items():
            if name.startswith("resolve_"):
                setattr(target, name, member)
        return extension

    return add
