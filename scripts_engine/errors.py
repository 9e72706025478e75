"""What the flows of this app refuse to do. Bad fields are Django's ``ValidationError``."""


class SourceError(Exception):
    """A source that does not compile. ``line`` counts from 1; ``None`` where there is none."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
