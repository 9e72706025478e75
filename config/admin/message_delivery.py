"""The page of message delivery, for superusers: the settings in force, and a test message."""

from typing import NamedTuple

from django import forms
from django.contrib.admin import site
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.addresses import canonical_phone, validate_phone, validate_typed_email
from accounts.admin.reach import is_superuser
from accounts.admin.test_messages import try_to_send
from accounts.flows.send_test_message import MessageOutcome
from accounts.messages.channels import Channel, Fact, email_facts, sms_facts


class _ChannelFacts(NamedTuple):
    title: str
    variables: str
    facts: list[Fact]


class RecipientForm(forms.Form):
    """The recipient of a test message: with an @ an e-mail address, otherwise a phone number."""

    to = forms.CharField(
        label="E-mail address or phone number",
        max_length=254,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "email", "spellcheck": "false"}),
        help_text=(
            "For example you@example.com, or a number with its country code: +491701234567. "
            "An SMS counts towards the number's limit of five a day."
        ),
    )

    def clean_to(self) -> str:
        typed: str = self.cleaned_data["to"].strip()
        if "@" in typed:
            validate_typed_email(typed)
            return typed
        number = canonical_phone(typed)
        validate_phone(number)
        return number

    @property
    def channel(self) -> Channel:
        return Channel.EMAIL if "@" in self.cleaned_data["to"] else Channel.SMS


def message_delivery(request: HttpRequest) -> HttpResponse:
    if not is_superuser(request):
        raise PermissionDenied
    form = RecipientForm(request.POST if request.method == "POST" else None)
    return TemplateResponse(
        request,
        "admin/message_delivery.html",
        {
            **site.each_context(request),
            "title": "Message delivery",
            "channels": [
                _ChannelFacts("E-mail", "EMAIL_URL and EMAIL_FROM", email_facts()),
                _ChannelFacts("SMS", "SMS_URL, SMS_COUNTRIES and SMS_DAILY_BUDGET", sms_facts()),
            ],
            "form": form,
            "outcome": _send(request, form) if form.is_valid() else None,
        },
    )


def _send(request: HttpRequest, form: RecipientForm) -> MessageOutcome | None:
    return try_to_send(request, form.channel, form.cleaned_data["to"], form)
