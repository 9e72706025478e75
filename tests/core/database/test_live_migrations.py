"""Limits of migrations on a PostgreSQL database in use."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections

from core.database.postgresql import base as schema

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL"),
]


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


@pytest.fixture
def _somebody_reads_the_table() -> Iterator[None]:
    other = connections.create_connection("default")
    other.set_autocommit(False)
    with other.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM accounts_organisation")
    yield
    other.rollback()
    other.close()


@pytest.mark.usefixtures("_somebody_reads_the_table")
def test_a_migration_does_not_wait_for_a_lock_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "LOCK_TIMEOUT_SECONDS", 1)
    with (
        pytest.raises(OperationalError, match="lock timeout"),
        connection.schema_editor() as editor,
    ):
        editor.execute("ALTER TABLE accounts_organisation ADD COLUMN probe integer")

    assert setting("lock_timeout") == "0"


@pytest.mark.parametrize("is_atomic", [True, False])
def test_only_a_migration_has_no_time_limit(is_atomic: bool) -> None:
    before = setting("statement_timeout")
    with connection.schema_editor(atomic=is_atomic):
        meanwhile = setting("statement_timeout")

    assert before == setting("statement_timeout") == f"{settings.DATABASE_TIMEOUT_SECONDS}s"
    assert meanwhile == "0"
    assert connection.connection.max_wait_seconds is not None
