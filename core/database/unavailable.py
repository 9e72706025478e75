"""Tells errors of a database that is unavailable from those of wrong statements or content.

Django's classes do not: a read-only PostgreSQL raises ``InternalError``, and so does a statement
after a failed one; a damaged SQLite file raises ``DatabaseError``, as a value that is too large.
"""

import sqlite3
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.utils import DatabaseErrorWrapper

# Connections, transactions, resources, locks, the operator, the system, and internal errors:
# https://www.postgresql.org/docs/current/errcodes-appendix.html
_SQLSTATE_CLASSES = frozenset({"08", "25", "40", "53", "55", "57", "58", "XX"})
# in_failed_sql_transaction: an earlier statement failed, and its error is the one to judge.
_FAILED_BEFORE = "25P02"
# Primary result codes: https://www.sqlite.org/rescode.html
_SQLITE_CODES = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)


class DatabaseUnavailable(OperationalError):
    """The database is gone, read-only, full, locked, damaged or too slow: try again later.

    Other errors of Django's classes are those of a statement or its content, and come again.
    """


class UnavailabilityWrapper(DatabaseErrorWrapper):
    """Django's translation of a driver's errors, with ``DatabaseUnavailable`` as one more class."""

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:  # noqa: PYI036
        database: Any = self.wrapper  # type: ignore[attr-defined]
        if isinstance(exc_value, database.Database.Error) and (
            _is_unavailable(exc_value) or _is_lost(database.connection)
        ):
            database.errors_occurred = True
            raise DatabaseUnavailable(*exc_value.args).with_traceback(traceback) from exc_value
        super().__exit__(exc_type, exc_value, traceback)


def _is_unavailable(error: sqlite3.Error | psycopg.Error) -> bool:
    if isinstance(error, sqlite3.Error):
        # The primary code is the lowest byte. Errors of the module itself have no code.
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_CODES
    sqlstate = error.sqlstate or error.diag.sqlstate
    if sqlstate is None:
        # Not from the server: psycopg cannot connect, has lost the connection, or waits no longer.
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return sqlstate[:2] in _SQLSTATE_CLASSES and sqlstate != _FAILED_BEFORE


def _is_lost(connection: Any) -> bool:
    """Whether a PostgreSQL connection has ended: then no error is that of the statement.

    For example, psycopg calls it a programming error to begin a transaction on one.
    """
    return isinstance(connection, psycopg.Connection) and connection.closed
