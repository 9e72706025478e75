"""Refusals of the flows as GraphQL errors."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from graphene.utils.str_converters import to_camel_case

from core.errors import ForbiddenError, NotFoundError, RateLimitedError
from core.graphql.graphql_problem import GraphQLProblem


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
