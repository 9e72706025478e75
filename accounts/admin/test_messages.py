"""Sending test messages from the admin."""

from django import forms
from django.db import connection
from django.http import HttpRequest

from accounts.admin.reach import person
from accounts.flows.send_test_message import MessageOutcome, send_test_message
from accounts.messages.channels import Channel
from accounts.models import User
from core.errors import RateLimitedError
from core.http.origin import origin_of


def try_to_send(
    request: HttpRequest, channel: Channel, to: str, form: forms.Form, about: User | None = None
) -> MessageOutcome | None:
    """The outcome, or ``None`` with an error on the form when a limit is reached."""
    connection.lift_deadline()  # type: ignore[attr-defined]
    try:
        return send_test_message(
            channel, to, origin=origin_of(request), by=person(request), about=about
        )
    except RateLimitedError as limited:
        minutes = -(-limited.retry_after_seconds // 60)
        form.add_error(
            None,
            f"Too many test messages sent by you or to this address. Try again in {minutes} min.",
        )
        return None
