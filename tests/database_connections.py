"""Follows the connections to the database that the code under test opens."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


class OpenedConnections(list[BaseDatabaseWrapper]):
    @property
    def still_open(self) -> list[BaseDatabaseWrapper]:
        return [each for each in self if each.connection is not None]


@contextmanager
def opened_connections() -> Iterator[OpenedConnections]:
    """Collects the connections that any thread opens meanwhile."""
    opened = OpenedConnections()

    def note(connection: BaseDatabaseWrapper, **others: Any) -> None:
        opened.append(connection)

    connection_created.connect(note)
    try:
        yield opened
    finally:
        connection_created.disconnect(note)
