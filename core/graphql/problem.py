"""The context of resolvers and the errors that they raise for the client."""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.http import HttpRequest

from core.http.bulkhead import Place


class GraphQLCode(StrEnum):
    """``extensions.code`` of a GraphQL error."""

    BAD_USER_INPUT = "BAD_USER_INPUT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    NOT_FOUND = "NOT_FOUND"
    RATE_LIMITED = "RATE_LIMITED"
    UNAVAILABLE = "UNAVAILABLE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
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
