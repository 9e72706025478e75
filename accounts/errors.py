"""What the flows of this app refuse to do. Bad fields are Django's ``ValidationError``."""


class ForbiddenError(Exception):
    """The actor may not do this to that object."""


class RateLimitedError(Exception):
    """Too many attempts. ``retry_after_seconds`` says when another is worth while."""

    def __init__(self, retry_after_seconds: int) -> None:
        super().__init__(f"too many attempts; try again in {retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class NotFoundError(Exception):
    """There is no such object within the actor's reach."""
