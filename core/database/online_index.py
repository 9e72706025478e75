"""Migration operations that add and remove indexes of a table in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db.migrations.operations import AddIndex, RemoveIndex


class AddIndexOnline(AddIndexConcurrently):
    """Adds an index without blocking writes on PostgreSQL; an ordinary ``AddIndex`` elsewhere.

    The migration must not be atomic, so an earlier attempt may have been interrupted: its index,
    invalid or not, is dropped first.
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
    """Removes an index without blocking on PostgreSQL; an ordinary ``RemoveIndex`` elsewhere.

    The migration must not be atomic. An index that an earlier attempt dropped is not an error.
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
