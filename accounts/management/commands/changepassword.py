"""Django's command, recorded in the audit log."""

from typing import Any

from django.contrib.auth.management.commands import changepassword

from accounts.audit import command_origin
from accounts.flows.users import record_password
from accounts.models import User


class Command(changepassword.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Django raises ``CommandError`` unless the password was changed."""
        done: str | None = super().handle(*args, **options)
        user = User.objects.get_by_natural_key(options["username"])
        record_password(user, origin=command_origin("changepassword"))
        return done
