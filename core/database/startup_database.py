"""The database: whether it answers."""

from typing import Any

import psycopg
from django.db import connection

from core.database.patience import Say, wait_until_nothing_is_missing

CONNECT_SECONDS = 3


def wait_for_database(*, seconds: float, say: Say) -> None:
    """Raises WaitedTooLong."""
    wait_until_nothing_is_missing(_what_is_missing, seconds=seconds, say=say)


def connect_directly() -> "psycopg.Connection[Any]":
    """A PostgreSQL connection beside the pool, whose errors say what is wrong."""
    parameters = connection.get_connection_params()
    own = {"host", "port", "dbname", "user", "password", "sslmode", "sslrootcert", "passfile"}
    return psycopg.connect(
        **{name: value for name, value in parameters.items() if name in own},
        connect_timeout=CONNECT_SECONDS,
        autocommit=True,
    )


def _what_is_missing() -> str | None:
    if connection.vendor != "postgresql":
        return None
    try:
        connect_directly().close()
    except psycopg.OperationalError as error:
        return f"the database at {_address()}: {_reason(error)}"
    return None


def _address() -> str:
    database = connection.settings_dict
    return f"{database['HOST'] or 'localhost'}:{database['PORT'] or 5432}"


def _reason(error: psycopg.OperationalError) -> str:
    """The part of libpq's message that says why, without whom it asked."""
    first_line = str(error).partition("\n")[0]
    return first_line.rpartition(": ")[2].strip().rstrip("?.").lower() or "no reason given"
