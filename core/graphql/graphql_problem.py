"""What a resolver raises when the client is to be told something."""

from enum import StrEnum
from typing import Any


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
