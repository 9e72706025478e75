"""What a resolver knows of its request, and what it raises for the client to be told."""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.http import HttpRequest

from core.http.bulkhead import Place


class GraphQLCode(StrEnum):
    """What went wrong, for programs: ``extensions.code`` of every GraphQL error."""

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
    """An error whose message and extensions are written for the client, and shown as they are.

    ``extensions`` stand next to ``code``: ``BAD_USER_INPUT`` takes ``field``, the name of the
    input that it is about, ``RATE_LIMITED`` and ``UNAVAILABLE`` take ``retryAfter``, the seconds
    (int) until another try is worth while.
    ``error`` is RFC 6750's error code, for the ``WWW-Authenticate`` header of a door's
    ``UNAUTHENTICATED``: ``invalid_token`` when a session was presented and refused.
    """

    def __init__(
        self,
        code: GraphQLCode | str,
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
    """``info.context``. ``session`` is what the door returned, ``None`` where it was not asked.

    The document holds the ``place``, if it is not a small one. ``counts`` of lists are shared by
    all its fields.
    """

    request: HttpRequest
    session: Any
    place: Place | None
    counts: dict[Hashable, Any] = field(default_factory=dict)

    def place_left_to_others(self) -> AbstractContextManager[None]:
        """Without the document's place, ``with`` this: for a wait that another limit bounds."""
        return nullcontext() if self.place is None else self.place.left_to_others()
