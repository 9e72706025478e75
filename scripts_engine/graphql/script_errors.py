"""Refusals of this app's flows as GraphQL errors."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil

from core.graphql.problem import GraphQLProblem
from core.graphql.resolving import domain_errors
from scripts_engine.errors import OrganisationInactiveError, SourceError
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable

logger = logging.getLogger(__name__)


@contextmanager
def script_errors() -> Iterator[None]:
    """Around a call of a flow: its refusals leave as ``GraphQLProblem``."""
    try:
        with domain_errors():
            yield
    except OrganisationInactiveError:
        raise GraphQLProblem("FORBIDDEN", "The organisation is switched off.") from None
    except SourceError as error:
        raise GraphQLProblem(
            "BAD_USER_INPUT", error.message, field="source", line=error.line
        ) from None
    except SandboxBusy as busy:
        raise GraphQLProblem(
            "RATE_LIMITED",
            "No place to run the script came free in time. Nothing ran; try again.",
            retryAfter=max(1, ceil(busy.retry_after)),
        ) from None
    except SandboxUnavailable as error:
        logger.error("No sandbox can be had: %s", error)  # noqa: TRY400  (no traceback storm)
        raise GraphQLProblem(
            "UNAVAILABLE", "Scripts cannot be run at present. Try again.", retryAfter=5
        ) from None
