"""The admin's sessions: Django's, in the database."""

from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError

from core.database.unavailable import DatabaseUnavailable


class SessionStore(db.SessionStore):
    """Django would tell the client that its session has ended where it could not be saved."""

    def save(self, *args: Any, **options: Any) -> None:
        try:
            super().save(*args, **options)
        except UpdateError as error:
            if isinstance(error.__context__, DatabaseUnavailable):
                raise error.__context__ from None
            raise
