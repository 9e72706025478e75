"""Errors as clients see them: message, location and ``extensions.code``.

Argument values are never repeated, because one may be a PIN that was sent as a number. graphql-core
puts them into its messages, so each message is reworded or known to contain only names.
"""

import logging
import re
from typing import Any

from django.http import HttpRequest
from graphql import GraphQLError, GraphQLFormattedError, GraphQLSyntaxError, ValueNode
from graphql.validation.validate import ValidationAbortedError

from core.database.unavailable import DatabaseUnavailable
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.problems import meaning
from core.http.request_id import request_id_of
from core.http.unavailable import RETRY_AFTER_SECONDS, unavailable

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
