"""Sending test messages: to a user from their page, and to any address that a page asks for."""

from typing import Any

from django import forms
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminRadioSelectWidget

from accounts.admin.reach import person
from accounts.flows.send_test_message import MessageOutcome, send_test_message
from accounts.messages.channels import Channel
from accounts.models import User
from core.admin.display import action
from core.admin.links import page_of
from core.errors import RateLimitedError
from core.http.origin import origin_of


class ChannelForm(forms.Form):
    channel = forms.ChoiceField(
        label="Send by",
        initial=Channel.EMAIL,
        widget=UnfoldAdminRadioSelectWidget,
        help_text="An SMS counts towards the number's daily limit of five and is charged as usual.",
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sms = f"SMS, to {user.phone}" if user.phone else "SMS (no phone number on the profile)"
        self.fields["channel"].choices = [  # type: ignore[attr-defined]
            (Channel.EMAIL.value, f"E-mail, to {user.delivery_email}"),
            (Channel.SMS.value, sms),
        ]


class UserTestMessage:
    """Mixin for the model admin of users."""

    @action(description="Send test message", permissions=["profile"], icon="outgoing_mail")
    def send_test_message(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        user: User = self.get_or_404(request, object_id)
        form = ChannelForm(user, request.POST if request.method == "POST" else None)
        outcome = _send(request, user, form) if form.is_valid() else None
        return TemplateResponse(
            request,
            "admin/test_message.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": "Send test message",
                "user_page": page_of(user),
                "original": user,
                "whom": user,
                "form": form,
                "outcome": outcome,
            },
        )


def _send(request: HttpRequest, user: User, form: forms.Form) -> MessageOutcome | None:
    channel = Channel(form.cleaned_data["channel"])
    to = user.delivery_email if channel is Channel.EMAIL else user.phone
    return try_to_send(request, channel, to, form, about=user)


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
