"""Indexes on a table that is in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations.operations import AddIndex, RemoveIndex


class AddIndexOnline(AddIndexConcurrently):
    """On PostgreSQL rows are written meanwhile; elsewhere it is an ordinary ``AddIndex``.

    For a migration that is not atomic, and so may have been cut off: what an earlier attempt left
    of the index, on PostgreSQL perhaps an invalid one, is dropped first.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        is_postgresql = _is_postgresql(schema_editor)
        name = schema_editor.quote_name(self.index.name)
        schema_editor.execute(
            f"DROP INDEX {'CONCURRENTLY ' if is_postgresql else ''}IF EXISTS {name}"
        )
        kind = AddIndexConcurrently if is_postgresql else AddIndex
        kind.database_forwards(self, app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        kind = AddIndexConcurrently if _is_postgresql(schema_editor) else AddIndex
        kind.database_backwards(self, app_label, schema_editor, from_state, to_state)


class RemoveIndexOnline(RemoveIndexConcurrently):
    """On PostgreSQL nobody waits for it; elsewhere it is an ordinary ``RemoveIndex``.

    For a migration that is not atomic: an index that an earlier attempt dropped is no error.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        concurrently = "CONCURRENTLY " if _is_postgresql(schema_editor) else ""
        name = schema_editor.quote_name(self.name)
        schema_editor.execute(f"DROP INDEX {concurrently}IF EXISTS {name}")

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        kind = RemoveIndexConcurrently if _is_postgresql(schema_editor) else RemoveIndex
        kind.database_backwards(self, app_label, schema_editor, from_state, to_state)


def _is_postgresql(schema_editor: Any) -> bool:
    return bool(schema_editor.connection.vendor == "postgresql")
