from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """A call of a script, with its payload unchanged."""

    method: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    client_address: str

    @property
    def content_type(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)
