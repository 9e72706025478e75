"""Errors of this app's flows as GraphQL errors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import domain_errors
from scripts_engine.errors import SourceError
from scripts_engine.not_run import NOT_RUN_ERRORS, retry_after_seconds, why_not_run

logger = logging.getLogger(__name__)


@contextmanager
def script_errors() -> Iterator[None]:
    """Raises the errors of the flow called inside as ``GraphQLProblem``."""
    try:
        with domain_errors():
            yield
    except SourceError as error:
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, error.message, field="source", line=error.line
        ) from None
    except NOT_RUN_ERRORS as error:
        raise _not_run_problem(error) from None


def _not_run_problem(error: Exception) -> GraphQLProblem:
    reason = why_not_run(error)
    if reason.graphql_code is GraphQLCode.UNAVAILABLE:
        logger.error("No sandbox is available: %s", error)
    retry_after = retry_after_seconds(error)
    extensions: dict[str, Any] = {} if retry_after is None else {"retryAfter": retry_after}
    return GraphQLProblem(reason.graphql_code, reason.text, **extensions)
