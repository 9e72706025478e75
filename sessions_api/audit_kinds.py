"""What the audit log records of logins by device code."""

from django.db.models import TextChoices

from accounts.models.auth_event import register_kinds


class ProgramLoginEvent(TextChoices):
    APPROVED = "program-login.approved", "Program login approved"
    REFUSED = "program-login.refused", "Program login refused"


class ProgramLoginSubject(TextChoices):
    PROGRAM_LOGIN = "program-login", "Program login"


def register() -> None:
    register_kinds(ProgramLoginEvent, ProgramLoginSubject)
