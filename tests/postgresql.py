"""Temporary databases on the PostgreSQL server of the tests."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

URL = os.environ.get("DATABASE_URL", "")
needs_postgresql = pytest.mark.skipif(
    not URL.startswith("postgres"), reason="DATABASE_URL names no PostgreSQL server"
)


def url_of(name: str, *, port: int | None = None) -> str:
    """The address of a database of that server, perhaps by way of another port."""
    parts = urlsplit(URL)
    if port is not None:
        user, at, _ = parts.netloc.rpartition("@")
        parts = parts._replace(netloc=f"{user}{at}127.0.0.1:{port}")
    return urlunsplit(parts._replace(path=f"/{name}"))


def execute(statement: str) -> None:
    """Runs a statement outside of any test's database."""
    with psycopg.connect(url_of("postgres"), autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def empty_database() -> Iterator[str]:
    """Its name; it is dropped at the end."""
    name = f"moonhook_test_{uuid.uuid4().hex[:12]}"
    execute(f'CREATE DATABASE "{name}"')
    try:
        yield name
    finally:
        execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
