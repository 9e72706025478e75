"""What can go wrong with a run, as hooks, GraphQL and the admin report it."""

from enum import StrEnum
from http import HTTPStatus
from typing import ClassVar, NamedTuple

from core.graphql.problem import GraphQLCode
from core.http.problem_handlers import RETRY_AFTER_SECONDS
from core.http.problems import Meaning, ProblemCode, register_problems
from scripts_engine.sandbox import SandboxBusy, SandboxUnavailable


class ScriptProblem(StrEnum):
    SCRIPT_FAILED = "script-failed"
    SCRIPT_OUT_OF_MEMORY = "script-out-of-memory"
    REPLY_TOO_LARGE = "reply-too-large"
    RUN_NOT_RECORDED = "run-not-recorded"
    SCRIPT_TIMED_OUT = "script-timed-out"


def register() -> None:
    register_problems(
        {
            ScriptProblem.SCRIPT_FAILED: Meaning(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "Script failed",
                "The script ended with an error. Administrators see it in the run.",
            ),
            ScriptProblem.SCRIPT_OUT_OF_MEMORY: Meaning(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "Script out of memory",
                "The script exceeded its memory limit.",
            ),
            ScriptProblem.REPLY_TOO_LARGE: Meaning(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "Reply too large",
                "The script's reply exceeds the size limit.",
            ),
            ScriptProblem.RUN_NOT_RECORDED: Meaning(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Run not recorded",
                "The script ran, but its run could not be stored, so its reply is withheld.",
            ),
            ScriptProblem.SCRIPT_TIMED_OUT: Meaning(
                HTTPStatus.GATEWAY_TIMEOUT,
                "Script timed out",
                "The script exceeded its time limit.",
            ),
        }
    )


class NotRun(NamedTuple):
    """``text`` is the same at every edge; ``status`` is the admin's."""

    status: HTTPStatus
    problem_code: StrEnum
    graphql_code: GraphQLCode
    text: str


def busy(problem_code: StrEnum, text: str) -> NotRun:
    """A reason that passes by itself."""
    return NotRun(HTTPStatus.SERVICE_UNAVAILABLE, problem_code, GraphQLCode.RATE_LIMITED, text)


class NotRunError(Exception):
    """Nothing ran. Apps above this one derive the errors of their own limits from it."""

    why: ClassVar[NotRun]
    retry_after_seconds: int | None = None
    """``None``: another try is not worthwhile."""


class OrganisationInactiveError(NotRunError):
    """The organisation is inactive, so its scripts do not run."""

    why = NotRun(
        HTTPStatus.CONFLICT,
        ProblemCode.NOT_FOUND,
        GraphQLCode.FORBIDDEN,
        "The organisation is switched off, so its scripts do not run.",
    )


_NO_SANDBOX: dict[type[Exception], NotRun] = {
    SandboxBusy: busy(ProblemCode.BUSY, "No sandbox came free in time. Nothing ran; try again."),
    SandboxUnavailable: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.UNAVAILABLE,
        GraphQLCode.UNAVAILABLE,
        "No sandbox is available. Nothing ran; try again.",
    ),
}
NOT_RUN_ERRORS: tuple[type[Exception], ...] = (NotRunError, *_NO_SANDBOX)


def why_not_run(error: Exception) -> NotRun:
    return error.why if isinstance(error, NotRunError) else _NO_SANDBOX[type(error)]


def retry_after_seconds(error: Exception) -> int | None:
    """Seconds until another try is worthwhile; ``None`` if it never is."""
    if isinstance(error, SandboxBusy):
        return error.retry_after
    if isinstance(error, NotRunError):
        return error.retry_after_seconds
    return RETRY_AFTER_SECONDS if isinstance(error, SandboxUnavailable) else None
