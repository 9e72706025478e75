"""Temporary databases on a PostgreSQL server."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg

CONNECT_SECONDS = 2


def is_reachable(server_url: str) -> bool:
    try:
        psycopg.connect(server_url, connect_timeout=CONNECT_SECONDS).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def empty_database(server_url: str) -> Iterator[str]:
    """Yields the address of a new database, which is dropped afterwards."""
    name = f"bench_{uuid.uuid4().hex[:12]}"
    # Kept until the end: servers that stop may leave no connection for another.
    with psycopg.connect(server_url, autocommit=True) as server:
        server.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
