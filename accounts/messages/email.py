from pathlib import Path

from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.filebased import EmailBackend as Outbox
from django.template.loader import render_to_string

from accounts.models import User
from core.plain_text import name_for_mail


def send_pin_email(user: User, pin: str, minutes: int) -> None:
    context = {"user_name": name_for_mail(user.name), "pin": pin, "minutes": minutes}
    send_email(
        user.delivery_email,
        subject=render_to_string("messages/pin_email_subject.txt", context).strip(),
        text=render_to_string("messages/pin_email.txt", context),
    )


def send_email(address: str, *, subject: str, text: str) -> Path | None:
    """Sends through ``EMAIL_URL``; without it, writes to the outbox and returns the file."""
    # Opened here, so that a connection whose login fails is closed too.
    with get_connection() as connection:
        EmailMessage(subject, text, None, [address], connection=connection).send()
    if isinstance(connection, Outbox):
        return Path(connection._get_filename())  # type: ignore[attr-defined]
    return None
