"""A database that answers and stores nothing."""

from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.db import connection


def read_only_database() -> AbstractContextManager[None]:
    """For statements of this thread."""
    return connection.execute_wrapper(execute_read_only)


def execute_read_only(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """An execute wrapper: the database itself refuses statements that write."""
    database = context["connection"].connection
    if connection.vendor == "sqlite":
        on, off = "PRAGMA query_only = 1", "PRAGMA query_only = 0"
    elif database.autocommit:
        on = "SET default_transaction_read_only = on"
        off = "SET default_transaction_read_only = off"
    else:
        # The transaction's end undoes it.
        on, off = "SET TRANSACTION READ ONLY", ""
    database.execute(on)
    try:
        return execute(sql, params, many, context)
    finally:
        if off:
            database.execute(off)


def assert_logged_in_one_line(caplog: pytest.LogCaptureFixture, code: str) -> None:
    """With that code, and without a traceback."""
    logged = [each for each in caplog.records if each.name.startswith("core.http.problem_handlers")]
    assert [each.getMessage().partition(":")[0] for each in logged] == [code]
    assert [each for each in caplog.records if each.exc_info] == []
