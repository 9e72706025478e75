"""The flooding and the measured organisation, with their credentials; created by `seeding.py`."""

import json
from dataclasses import asdict, dataclass
from typing import NamedTuple, Self

# A well-formed token: Django compares the form's with the cookie's, and both are the client's.
CSRF_TOKEN = "flood" * 6 + "ab"


class Request(NamedTuple):
    """An HTTP request; its sender knows the node."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""

    @classmethod
    def posting_json(cls, path: str, document: object, **headers: str) -> Self:
        return cls(
            "POST",
            path,
            {"Content-Type": "application/json", **headers},
            json.dumps(document, separators=(",", ":")).encode(),
        )


@dataclass(frozen=True)
class Flooder:
    """An organisation with most of the runs, and a session of each kind."""

    api_key: str
    session: str
    admin_cookie: str
    hooks: dict[str, str]
    """Paths, by what the scripts do."""
    admin_pages: list[str]
    wrong_secrets: list[str]
    """Well-formed, so that the database is asked."""
    since: list[str]
    """Moments within the age of its runs, for filters."""


@dataclass(frozen=True)
class Neighbour:
    """The organisation that must not be affected."""

    session: str
    admin_cookie: str
    hook: str
    runs_page: str


@dataclass(frozen=True)
class Cast:
    flooder: Flooder
    neighbour: Neighbour
    many_hooks: list[str]
    """Paths of hooks, each of another organisation."""

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(
            Flooder(**fields["flooder"]), Neighbour(**fields["neighbour"]), fields["many_hooks"]
        )
