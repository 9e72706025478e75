"""What ``ENGINE`` names."""

from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base


class RememberingCursor(base.SQLiteCursorWrapper):
    """Remembers what became of a statement's placeholders.

    Django looks through the whole text for each ``%s``, every time: for an INSERT of 29 columns
    that takes as long as the INSERT itself.
    """

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names is not None:
            return super().convert_query(query, param_names=param_names)
        return _with_question_marks(query)


@lru_cache(maxsize=1024)
def _with_question_marks(query: str) -> str:
    return base.FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


class DatabaseWrapper(base.DatabaseWrapper):
    def create_cursor(self, name: str | None = None) -> RememberingCursor:
        return self.connection.cursor(factory=RememberingCursor)

    def statement_cursor(self) -> RememberingCursor:
        """For statements that come again and again, without Django's wrapper."""
        return self.create_cursor()
