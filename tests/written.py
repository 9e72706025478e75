"""Asserts that nothing happens, by the statements that are executed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.sessions.models import Session as AdminSession
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Model

from accounts.models import RateCounter

# How often something was tried, and when a login was last used, are no change of anything.
_COUNTED = {RateCounter._meta.db_table, AdminSession._meta.db_table}
_READS = re.compile(
    r"\s*\(?(SELECT|WITH|VALUES|EXPLAIN|PRAGMA|SET|SHOW|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|LISTEN)\b",
    re.IGNORECASE,
)
_WRITES = re.compile(
    r"\b(?:INSERT INTO|REPLACE INTO|DELETE FROM|(?<!FOR )(?<!KEY )(?<!DO )UPDATE)\s+\"?(\w+)",
    re.IGNORECASE,
)


@contextmanager
def nothing_written(besides: type[Model] | None = None) -> Iterator[None]:
    """Fails if a statement changes a row meanwhile, in any thread, even if it is rolled back.

    Admitted are changes of rate counters, of the admin's sessions, and of ``besides``.
    """
    counted = _COUNTED | ({besides._meta.db_table} if besides else set())
    with pytest.MonkeyPatch.context() as patch:
        written = _recorded(patch, counted)
        yield
    assert not written, f"written: {written}"


def _recorded(patch: pytest.MonkeyPatch, counted: set[str]) -> list[str]:
    """The list to which changing statements are added from now on."""
    written: list[str] = []
    execute, execute_many = CursorWrapper._execute, CursorWrapper._executemany
    backend = type(connections[DEFAULT_DB_ALIAS])
    execute_statement = backend.execute_statement

    def note(sql: str, rowcount: int) -> None:
        if _changes(sql, counted) and (rowcount != 0 or "RETURNING" in sql):
            written.append(sql)

    def watched(self: Any, sql: str, *given: Any) -> Any:
        result = execute(self, sql, *given)
        note(sql, self.cursor.rowcount)
        return result

    def watched_many(self: Any, sql: str, *given: Any) -> Any:
        result = execute_many(self, sql, *given)
        note(sql, self.cursor.rowcount)
        return result

    def watched_statement(self: Any, sql: str, *given: Any, **named: Any) -> Any:
        cursor = execute_statement(self, sql, *given, **named)
        note(sql, cursor.rowcount)
        return cursor

    patch.setattr(CursorWrapper, "_execute", watched)
    patch.setattr(CursorWrapper, "_executemany", watched_many)
    patch.setattr(backend, "execute_statement", watched_statement)
    return written


def _changes(sql: str, counted: set[str]) -> bool:
    """Whether a statement may change rows of other tables than the counted."""
    tables = set(_WRITES.findall(sql))
    return bool(tables - counted) or (not tables and not _READS.match(sql))
