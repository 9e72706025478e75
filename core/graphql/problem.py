"""Errors of GraphQL: what resolvers raise, and what clients see.

A client sees message, location and ``extensions.code``. Argument values are never repeated,
because one may be a PIN that was sent as a number. graphql-core puts them into its messages, so
each message is reworded or known to contain only names.
"""

import logging
import re
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.http import HttpRequest
from graphql import GraphQLError, GraphQLFormattedError, GraphQLSyntaxError, ValueNode
from graphql.validation.validate import ValidationAbortedError

from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import Place
from core.http.origin import request_id_of
from core.http.problem_handlers import RETRY_AFTER_SECONDS, unavailable
from core.http.problems import meaning

logger = logging.getLogger(__name__)

# The parts of graphql-core's syntax errors that do not quote the document.
_LEXEME = r"(?:<EOF>|<SOF>|Name|Int|Float|String|BlockString|'(?:[^\w\s']{1,3}|[a-z]+)')"
_SYNTAX_ERROR = re.compile(
    rf"Syntax Error: (?:Unexpected {_LEXEME}|Expected {_LEXEME}, found {_LEXEME}"
    r"|Unterminated string|Invalid number|Invalid character escape sequence"
    r"|Invalid Unicode escape sequence|Invalid character within String|Invalid character"
    r"|Unexpected character|Unexpected single quote character|Unexpected description"
    r"|Unexpected variable)"
)
_PARSER_LIMIT = re.compile(
    r"Syntax Error: (Document (?:contains more than \d+ (?:tokens|comments)"
    r"|is nested too deeply))\. Parsing aborted\."
)
_ARGUMENT = re.compile(r"Argument '(\w+)'")


class GraphQLCode(StrEnum):
    """``extensions.code`` of a GraphQL error."""

    BAD_USER_INPUT = "BAD_USER_INPUT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    CONFLICT = "CONFLICT"
    GRAPHQL_VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    INTERNAL = "INTERNAL"


_REQUIRED_EXTENSION = {
    GraphQLCode.BAD_USER_INPUT: "field",
    GraphQLCode.RATE_LIMITED: "retryAfter",
    GraphQLCode.UNAVAILABLE: "retryAfter",
}


class GraphQLProblem(Exception):
    """An error whose message and extensions are shown to the client unchanged.

    ``extensions`` are sent beside ``code``: ``BAD_USER_INPUT`` takes ``field``, the name of the
    wrong input; ``RATE_LIMITED`` and ``UNAVAILABLE`` take ``retryAfter``, the seconds (int) to
    wait before a retry. ``error`` is RFC 6750's error code for the ``WWW-Authenticate`` header of
    ``UNAUTHENTICATED``: ``invalid_token`` when the presented session was refused.
    """

    def __init__(
        self,
        code: GraphQLCode,
        message: str,
        *,
        error: str | None = None,
        **extensions: Any,
    ) -> None:
        super().__init__(message)
        self.code = GraphQLCode(code)
        if (required := _REQUIRED_EXTENSION.get(self.code)) and required not in extensions:
            raise TypeError(f"{self.code} takes {required}")
        self.message = message
        self.error = error
        self.extensions = extensions


@dataclass(frozen=True, slots=True)
class GraphQLContext:
    """``info.context``.

    ``session`` is ``None`` where the request was not authenticated, ``place`` where the document is
    too small to hold one. ``counts`` of lists are shared by all fields.
    """

    request: HttpRequest
    session: Any
    place: Place | None
    counts: dict[Hashable, Any] = field(default_factory=dict)

    def place_left_to_others(self) -> AbstractContextManager[None]:
        """Releases the document's place during a wait that another limit bounds."""
        return nullcontext() if self.place is None else self.place.left_to_others()


def problem_error(problem: GraphQLProblem) -> GraphQLFormattedError:
    return _error(problem.message, problem.code, **problem.extensions)


def bad_input(message: str, field: str) -> GraphQLFormattedError:
    """A BAD_USER_INPUT error; ``field`` names the wrong part of the request."""
    return _error(message, GraphQLCode.BAD_USER_INPUT, field=field)


def syntax_error(error: GraphQLSyntaxError) -> GraphQLFormattedError:
    """Names the kind and location of the wrong token, but not its text."""
    if limit := _PARSER_LIMIT.fullmatch(error.message):
        return _located(error, f"{limit[1]}.", GraphQLCode.LIMIT_EXCEEDED)
    safe = _SYNTAX_ERROR.match(error.message)
    message = safe[0] if safe else "Syntax Error: The document cannot be parsed"
    return _located(error, f"{message}.", GraphQLCode.GRAPHQL_VALIDATION_FAILED)


def validation_error(error: GraphQLError) -> GraphQLFormattedError:
    is_aborted = isinstance(error, ValidationAbortedError)
    code = GraphQLCode.LIMIT_EXCEEDED if is_aborted else GraphQLCode.GRAPHQL_VALIDATION_FAILED
    return _located(error, error.message, code)


def limit_error(error: GraphQLError) -> GraphQLFormattedError:
    return _located(error, error.message, GraphQLCode.LIMIT_EXCEEDED)


def forbidden_field(error: GraphQLError, scope: str) -> GraphQLFormattedError:
    """The error of a field that needs more than the session holds; ``scope`` names it."""
    return _located(error, error.message, GraphQLCode.FORBIDDEN, scope=scope)


def execution_error(error: GraphQLError, request: HttpRequest) -> GraphQLFormattedError:
    """The error of a field: problems unchanged, wrong arguments by name, all others masked."""
    cause = error.original_error or error
    if isinstance(cause, GraphQLProblem):
        return _located(error, cause.message, cause.code, **cause.extensions)
    if isinstance(cause, GraphQLError) and (argument := _invalid_argument(cause)):
        message = f"Argument '{argument}' got an invalid value."
        return _located(error, message, GraphQLCode.BAD_USER_INPUT, field=argument)
    if isinstance(cause, DatabaseUnavailable):
        problem = unavailable_problem(cause, request)
        return _located(error, problem.message, problem.code, **problem.extensions)
    masked = internal_error(cause, request)
    return _located(error, masked["message"], **masked["extensions"])


def unavailable_problem(cause: Exception, request: HttpRequest) -> GraphQLProblem:
    """The problem of a database that does not answer; logs the cause."""
    problem = unavailable(request, cause)
    return GraphQLProblem(
        GraphQLCode.UNAVAILABLE, meaning(problem.code).detail, retryAfter=RETRY_AFTER_SECONDS
    )


def internal_error(cause: Exception, request: HttpRequest) -> GraphQLFormattedError:
    """Log the exception; the client only gets the request id, to report it."""
    request_id = request_id_of(request)
    logger.error(
        "Unexpected error, %s, request %s",
        request.path,
        request_id,
        exc_info=_without_document(cause) if isinstance(cause, GraphQLError) else cause,
    )
    return _error("Internal error.", GraphQLCode.INTERNAL, requestId=request_id)


def _invalid_argument(error: GraphQLError) -> str | None:
    """The argument whose value graphql-core refused in execution, for example a null variable."""
    if not error.nodes or not isinstance(error.nodes[0], ValueNode):
        return None
    match = _ARGUMENT.match(error.message)
    return match[1] if match else None


def _without_document(error: GraphQLError) -> Exception:
    """A copy for the log: ``str()`` of a GraphQLError quotes the document with its literals."""
    return RuntimeError(error.message).with_traceback(error.__traceback__)


def _located(
    error: GraphQLError, message: str, code: GraphQLCode, **extensions: Any
) -> GraphQLFormattedError:
    formatted = error.formatted
    located = _error(message, code, **extensions)
    if "locations" in formatted:
        located["locations"] = formatted["locations"]
    if "path" in formatted:
        located["path"] = formatted["path"]
    return located


def _error(message: str, code: GraphQLCode, **extensions: Any) -> GraphQLFormattedError:
    return {"message": message, "extensions": {"code": code, **extensions}}
