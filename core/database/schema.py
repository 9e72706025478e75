"""Elements of a schema: references without constraints, and indexes added to tables in use."""

from typing import Any

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import models
from django.db.migrations.operations import AddIndex


class LooseReference(models.ForeignKey):
    """A nullable foreign key without a constraint, an index, or anything done on deletion.

    Rows whose targets are deleted in batches, or without them, keep the id. Read the target with a
    query: the attribute raises ``DoesNotExist`` if it is gone.
    """

    def __init__(self, to: Any, **options: Any) -> None:
        fixed = {
            "null": True,
            "on_delete": models.DO_NOTHING,
            "db_constraint": False,
            "db_index": False,
        }
        super().__init__(to, **(options | fixed))

    def db_type(self, connection: Any) -> str | None:
        """Undeclared on SQLite, which chooses indexes by the declared width of the table's rows."""
        return "" if connection.vendor == "sqlite" else super().db_type(connection)


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


def _is_postgresql(schema_editor: Any) -> bool:
    return bool(schema_editor.connection.vendor == "postgresql")
