from typing import NamedTuple


class Event(NamedTuple):
    """A call of a script, with its payload unchanged."""

    method: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    client_address: str
    sender: str = ""
    """The hook's sender; ``""`` if the hook has none, or a person started the run."""
    verified: str = ""
    """How strongly the call proves its sender, as ``signed``; ``""`` if there is none."""
    event_id: str | None = None
    """The sender's id of the event, from signed material.

    ``""`` if deliveries are to be recognised by it and the call has none.
    """

    content: tuple[str | bytes, ...] = ()
    """What equal deliveries of a hook have in common where their body is compared."""

    shared_secrets: tuple[str, ...] = ()
    """Secrets that the payload may hold in clear; its record hides them."""

    @property
    def content_type(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)
