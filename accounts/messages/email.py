from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.filebased import EmailBackend as Outbox
from django.template.loader import render_to_string

from accounts.models import User
from core.plain_text import name_for_mail


def send_pin_email(user: User, pin: str, minutes: int) -> None:
    context = {"user_name": name_for_mail(user.name), "pin": pin, "minutes": minutes}
    send_email(user.delivery_email, "pin_email", context)


def send_email(address: str, name: str, context: Mapping[str, object]) -> Path | None:
    """Sends the message of that name through ``EMAIL_URL``.

    Without ``EMAIL_URL``, writes to the outbox and returns the file.
    """
    known = {"public_url": settings.PUBLIC_URL, **context}
    subject = render_to_string(f"messages/{name}_subject.txt", known).strip()
    text = render_to_string(f"messages/{name}.txt", known)
    # Opened here, so that a connection whose login fails is closed too.
    with get_connection() as connection:
        EmailMessage(subject, text, None, [address], connection=connection).send()
    if isinstance(connection, Outbox):
        return Path(connection._get_filename())  # type: ignore[attr-defined]
    return None
