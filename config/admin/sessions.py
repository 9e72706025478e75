"""The admin's sessions: Django's, in the database."""

from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.utils import timezone

from core.database.batches import delete_in_batches
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


def forget_admin_sessions() -> int:
    rows = SessionStore.get_model_class().objects
    return delete_in_batches(rows.filter(expire_date__lte=timezone.now()))
