"""Django's command, recorded in the audit log."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from accounts.audit import command_origin
from accounts.flows.users import record_new_superuser
from accounts.models import User


class Command(createsuperuser.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        """Compares before and after: interactively, Django alone learns the typed address."""
        before = set(User.objects.filter(is_superuser=True).values_list("pk", flat=True))
        done: str | None = super().handle(*args, **options)
        for user in User.objects.filter(is_superuser=True).exclude(pk__in=before):
            record_new_superuser(user, origin=command_origin("createsuperuser"))
        return done
