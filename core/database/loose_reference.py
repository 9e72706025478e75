"""A foreign key to a row that may be gone."""

from typing import Any

from django.db import models


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
