"""Errors that flows raise for their edges. Invalid fields raise Django's ``ValidationError``."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType

from django.core.exceptions import ValidationError


class ForbiddenError(Exception):
    """The actor may not do this to that object. ``extensions`` are for the client."""

    extensions: Mapping[str, str] = MappingProxyType({})


class AddressTakenError(ForbiddenError):
    """The e-mail address belongs to a user that the actor may not know of."""


class RateLimitedError(Exception):
    """Too many attempts; wait ``retry_after_seconds`` before the next."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many attempts; try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class LimitExceededError(ValidationError):
    """As much as allowed is there already. Nothing was changed; the text is for the client."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="limit")


class NotFoundError(Exception):
    """The object does not exist, or is out of the actor's reach."""


class ConflictError(Exception):
    """The object has moved on since it was read. Nothing was changed; the text is for the client.

    ``extensions`` are for the client: of a single object, who changed it and when.
    """

    def __init__(self, message: str, **extensions: str) -> None:
        super().__init__(message)
        self.extensions: Mapping[str, str] = extensions

    @classmethod
    def of_row(cls, name: str, *, by: str, at: datetime) -> "ConflictError":
        moment = at.astimezone(UTC)
        message = f"“{name}” was changed by {by or 'somebody'} at {moment:%Y-%m-%d %H:%M:%S} UTC."
        return cls(message, by=by, at=moment.isoformat())


class DeliveryError(Exception):
    """A message was refused for good. The text never quotes the message."""


class TryAgainError(DeliveryError):
    """A message was not accepted for a transient reason; retry until ``give_up_at``."""

    def __init__(self, message: str, *, give_up_at: datetime | None = None) -> None:
        super().__init__(message)
        self.give_up_at = give_up_at
