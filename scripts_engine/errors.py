"""Errors of this app's flows. Invalid fields raise Django's ``ValidationError``."""


class SourceError(Exception):
    """The source does not compile. ``line`` counts from 1, and is ``None`` if unknown."""

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line

    @property
    def flaw(self) -> str:
        """Lua's message without the script's name and the line."""
        _, found, flaw = self.message.partition(f":{self.line}: ")
        return flaw if found else self.message


class OrganisationInactiveError(Exception):
    """The organisation is inactive, so its scripts do not run."""
