"""What the flows of this app refuse to do. Bad fields are Django's ``ValidationError``."""

from datetime import datetime


class ForbiddenError(Exception):
    """The actor may not do this to that object."""


class AddressTakenError(ForbiddenError):
    """Somebody has the e-mail address already, who is not the actor's to know of."""


class RateLimitedError(Exception):
    """Too many attempts. ``retry_after_seconds`` says when another is worth while."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many attempts; try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class NotFoundError(Exception):
    """There is no such object within the actor's reach."""


class DeliveryError(Exception):
    """A message was not taken, and will not be. The text never quotes the message."""


class TryAgainError(DeliveryError):
    """A message was not taken for a reason that passes: worth trying again until ``give_up_at``."""

    def __init__(self, message: str, *, give_up_at: datetime | None = None) -> None:
        super().__init__(message)
        self.give_up_at = give_up_at
