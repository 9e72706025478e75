"""Reasons why a script did not run, as hooks, GraphQL and the admin report them."""

from http import HTTPStatus
from typing import NamedTuple

from core.graphql.problem import GraphQLCode
from core.http.problems import ProblemCode
from core.http.unavailable import RETRY_AFTER_SECONDS
from scripts_engine.errors import OrganisationInactiveError
from scripts_engine.flows.concurrent_runs import RunLimitReachedError
from scripts_engine.flows.idempotency import DuplicateInProgressError
from scripts_engine.flows.queue.room import QueueFullError
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable


class NotRun(NamedTuple):
    """``text`` is the same at every edge; ``status`` is the admin's."""

    status: HTTPStatus
    problem_code: ProblemCode
    graphql_code: GraphQLCode
    text: str


NOT_RUN: dict[type[Exception], NotRun] = {
    OrganisationInactiveError: NotRun(
        HTTPStatus.CONFLICT,
        ProblemCode.NOT_FOUND,
        GraphQLCode.FORBIDDEN,
        "The organisation is switched off, so its scripts do not run.",
    ),
    SandboxBusy: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.BUSY,
        GraphQLCode.RATE_LIMITED,
        "No sandbox came free in time. Nothing ran; try again.",
    ),
    RunLimitReachedError: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.BUSY,
        GraphQLCode.RATE_LIMITED,
        "As many runs as allowed are in progress. Nothing ran; try again.",
    ),
    DuplicateInProgressError: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.DUPLICATE_IN_PROGRESS,
        GraphQLCode.RATE_LIMITED,
        "The same delivery is being processed. Nothing ran; try again for its reply.",
    ),
    QueueFullError: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.QUEUE_FULL,
        GraphQLCode.RATE_LIMITED,
        "As many runs or bytes as allowed wait in the organisation's queue. Nothing was queued; "
        "try again.",
    ),
    SandboxUnavailable: NotRun(
        HTTPStatus.SERVICE_UNAVAILABLE,
        ProblemCode.UNAVAILABLE,
        GraphQLCode.UNAVAILABLE,
        "No sandbox is available. Nothing ran; try again.",
    ),
}
NOT_RUN_ERRORS = tuple(NOT_RUN)


def why_not_run(error: Exception) -> NotRun:
    return NOT_RUN[type(error)]


def retry_after_seconds(error: Exception) -> int | None:
    """Seconds until another try is worthwhile; ``None`` if it never is."""
    if isinstance(error, SandboxBusy):
        return error.retry_after
    if isinstance(error, RunLimitReachedError | DuplicateInProgressError | QueueFullError):
        return error.retry_after_seconds
    return RETRY_AFTER_SECONDS if isinstance(error, SandboxUnavailable) else None
