"""What the flows of this app refuse to do. Bad fields are Django's ``ValidationError``."""


class SourceError(Exception):
    """A source that does not compile. ``line`` counts from 1; ``None`` where there is none."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    @property
    def flaw(self) -> str:
        """Lua's own message without the script's name and the line."""
        _, found, flaw = self.message.partition(f":{self.line}: ")
        return flaw if found else self.message


class OrganisationInactiveError(Exception):
    """Nothing of an organisation that is switched off runs."""
