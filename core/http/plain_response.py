"""A response as the server sends it, for edges that do without Django's."""

from typing import NamedTuple


class PlainResponse(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
