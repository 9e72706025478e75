"""Sending a test message from a page of the admin, and saying there what came of it."""

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
    """What came of it; ``None``, and an error on the form, for who has sent too many."""
    connection.lift_deadline()  # type: ignore[attr-defined]
    try:
        return send_test_message(
            channel, to, origin=origin_of(request), by=person(request), about=about
        )
    except RateLimitedError as limited:
        minutes = -(-limited.retry_after_seconds // 60)
        form.add_error(
            None,
            "You have sent many test messages, or this address has had its ten of the day. "
            f"Wait {minutes} min for the next.",
        )
        return None
