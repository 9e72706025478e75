from django.core.mail import send_mail
from django.template.loader import render_to_string

from accounts.models import User


def send_pin_email(user: User, pin: str, minutes: int) -> None:
    """Sends through ``EMAIL_URL``, or into the outbox where there is none."""
    context = {"user": user, "pin": pin, "minutes": minutes}
    send_mail(
        subject=render_to_string("messages/pin_email_subject.txt", context).strip(),
        message=render_to_string("messages/pin_email.txt", context),
        from_email=None,
        recipient_list=[user.delivery_email],
    )
