"""The form in which an administrator sets somebody's password."""

from collections.abc import Callable
from typing import Any

from django.db import transaction
from unfold.forms import AdminPasswordChangeForm

from accounts.models import User


class PasswordForm(AdminPasswordChangeForm):
    """Hashes before its transaction begins: nobody waits for the database because of a hash.

    ``may_save`` holds the user's row, and raises if the password must not be set by now.
    """

    def __init__(self, *args: Any, may_save: Callable[[User], None], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._may_save = may_save

    def set_password_and_save(self, user: Any, *args: Any, **options: Any) -> Any:
        super().set_password_and_save(user, *args, **{**options, "commit": False})
        with transaction.atomic():
            self._may_save(user)
            user.save(update_fields=["password"])
        return user
