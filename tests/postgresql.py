"""Temporary databases on the PostgreSQL server of the tests."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

# A server for the tests that need one, whatever database the others use.
URL = os.environ.get("TEST_POSTGRES_URL") or os.environ.get("DATABASE_URL", "")
IS_POSTGRESQL = URL.startswith("postgres")
needs_postgresql = pytest.mark.skipif(
    not IS_POSTGRESQL, reason="TEST_POSTGRES_URL and DATABASE_URL name no PostgreSQL server"
)


# Of its pages, only those whose modules have the marker ask what the two databases answer apart.
_PAGES = "tests/admin/"
_BACKENDS = "tests/core/database/"


def may_differ_on_postgresql(item: pytest.Item) -> bool:
    """Whether a test could have another result there than on SQLite.

    That is each test with rows, of a backend, or that skips by the database; not one that renders a
    page of the admin, unless it commits or has the marker ``postgresql``; and each that is not an
    everyday test.
    """
    if any(item.get_closest_marker(name) for name in ("slow", "browser", "conformance")):
        return True
    if item.get_closest_marker("postgresql") or item.get_closest_marker("skipif"):
        return True
    database = item.get_closest_marker("django_db")
    fixtures = set(getattr(item, "fixturenames", ()))
    commits = "transactional_db" in fixtures or "live_server" in fixtures
    if commits or (database is not None and database.kwargs.get("transaction")):
        return True
    if item.nodeid.startswith(_BACKENDS):
        return True
    has_rows = database is not None or "db" in fixtures
    return has_rows and not item.nodeid.startswith(_PAGES)


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
