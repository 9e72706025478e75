"""Rows that were loaded together: what one of them needs is loaded for all of them at once."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from django.db.models import Model

Row = TypeVar("Row", bound=Model)

_ATTRIBUTE = "_peers"


def as_peers(rows: Iterable[Row]) -> list[Row]:
    """Makes the rows peers of each other."""
    peers = list(rows)
    for row in peers:
        setattr(row, _ATTRIBUTE, peers)
    return peers


def peers_of(row: Row) -> Sequence[Row]:
    """The row itself and those that were loaded with it."""
    peers: Sequence[Row] = getattr(row, _ATTRIBUTE, [row])
    return peers
