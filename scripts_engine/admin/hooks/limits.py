"""The limits of a hook's calls: networks, methods, sizes, duplicates, runs at once, attempts."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import URLPattern, path
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from core.admin.links import action_of, page_of
from core.http.origin import origin_of
from scripts_engine.admin.hooks.form_errors import add_errors
from scripts_engine.admin.hooks.sender import SenderPages
from scripts_engine.flows.call_rules import rules_in_force
from scripts_engine.flows.hooks import update_hook
from scripts_engine.flows.rules_of_call import CallRules, default_accepted_status
from scripts_engine.models import Hook, Idempotency, ReplyMode

_METHODS = {"": None, "POST": ["POST"], "GET": ["GET"], "GET,POST": ["GET", "POST"]}
_DUPLICATES = {
    Idempotency.NONE.value: "not looked for",
    Idempotency.EVENT_ID.value: "by the sender's event id",
    Idempotency.BODY_HASH.value: "by equal method, path, query and body",
}


class LimitsForm(forms.Form):
    """Empty fields stand for defaults."""

    allowed_networks = forms.CharField(
        label="Networks",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        help_text="One per line, for example 192.0.2.0/24. Other callers are answered like a wrong "
        "token. Empty: every network.",
    )
    methods = forms.ChoiceField(
        label="Methods",
        required=False,
        choices=[("", "GET and POST"), ("POST", "POST only"), ("GET", "GET only")],
        widget=UnfoldAdminSelectWidget,
        help_text="Handshakes are answered whatever you choose.",
    )
    max_body_bytes = forms.IntegerField(label="Largest payload (bytes)", required=False)
    tolerance_seconds = forms.IntegerField(label="Tolerance of signed times (s)", required=False)
    signed_url = forms.CharField(
        label="Signed URL",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="If the sender signs the URL and sees another one than this server's.",
    )
    idempotency = forms.ChoiceField(
        label="Duplicates",
        required=False,
        choices=[
            ("", "By the event id, if the sender signs one"),
            (Idempotency.EVENT_ID.value, "By the event id"),
            (Idempotency.BODY_HASH.value, "By equal method, path, query and body"),
            (Idempotency.NONE.value, "Run every delivery"),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="A repeated delivery gets the recorded reply, and nothing runs. Bodies are not "
        "compared where anyone may call with GET.",
    )
    idempotency_window_seconds = forms.IntegerField(
        label="Remember deliveries for (s)", required=False
    )
    event_id_pointers = forms.CharField(
        label="Event id in the body",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="Up to 3 JSON pointers, one per line, for example /event/id. Only in bodies that "
        "the sender signs.",
    )
    calls_per_minute = forms.IntegerField(label="Calls a minute", required=False)
    burst = forms.IntegerField(label="Calls at once", required=False)
    max_concurrent_runs = forms.IntegerField(label="Runs at the same time", required=False)
    reply_mode = forms.ChoiceField(
        label="Reply",
        required=False,
        choices=[
            ("", "The script's reply"),
            (ReplyMode.ACCEPTED.value, "Accepted: reply as soon as the run is queued"),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="A queued run that fails is tried again.",
    )
    accepted_status = forms.IntegerField(label="Status of accepted calls", required=False)
    max_attempts = forms.IntegerField(label="Attempts of a queued run", required=False)

    def __init__(self, hook: Hook, data: QueryDict | None) -> None:
        super().__init__(data, initial=_initial(hook))
        for name, default in _defaults(hook).items():
            field = self.fields[name]
            field.widget = UnfoldAdminIntegerFieldWidget()
            field.help_text = f"Empty: {default}."

    def changes(self) -> dict[str, Any]:
        """The values as ``update_hook`` takes them."""
        given = self.cleaned_data
        lists = {
            name: given[name].split() or None for name in ("allowed_networks", "event_id_pointers")
        }
        methods = {"methods": _METHODS[given["methods"]]}
        others = {name: value for name, value in given.items() if name not in lists | methods}
        return {**others, **lists, **methods}


def _initial(hook: Hook) -> dict[str, Any]:
    values = {name: getattr(hook, name) for name in LimitsForm.base_fields}
    for name in ("allowed_networks", "event_id_pointers"):
        values[name] = "\n".join(values[name] or ())
    is_both = values["methods"] in (None, ["GET", "POST"])
    values["methods"] = "" if is_both else ",".join(values["methods"])
    return values


def _defaults(hook: Hook) -> dict[str, str]:
    rules = rules_in_force(hook)
    tolerance = None if rules.sender is None else rules.sender.tolerance_seconds
    return {
        "max_body_bytes": f"{rules.max_body_bytes:,}",
        "tolerance_seconds": "the sender's" if tolerance is None else f"{tolerance:,} s",
        "idempotency_window_seconds": "a day",
        "calls_per_minute": "unlimited",
        "burst": "a tenth of the calls a minute",
        "max_concurrent_runs": "unlimited",
        "accepted_status": f"{default_accepted_status(hook.sender)}",
        "max_attempts": f"{settings.QUEUE_MAX_ATTEMPTS}",
    }


class LimitsPage(SenderPages):
    """Adds the page of a hook's limits."""

    def get_urls(self) -> list[URLPattern]:
        limits = self.admin_site.admin_view(self.limits_view)
        page = path("<path:object_id>/limits/", limits, name="scripts_engine_hook_limits")
        return [page, *super().get_urls()]

    def limits_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        form = LimitsForm(hook, request.POST if request.method == "POST" else None)
        if form.is_valid():
            try:
                update_hook(hook, origin=origin_of(request), **form.changes())
            except ValidationError as error:
                add_errors(form, error)
            else:
                self.log_change(request, hook, "Changed the limits.")
                self.message_user(request, "The limits are saved.", messages.SUCCESS)
                return redirect(page_of(hook))
        context = {"form": form, "button": "Save"}
        return self._form_page(request, hook, "admin/hook_form.html", "Limits", context)


def limits_context(hook: Hook) -> dict[str, Any]:
    """The context of ``admin/parts/hook_limits.html``, on the hook's page."""
    rules = rules_in_force(hook)
    runs = rules.max_concurrent_runs
    return {
        "limits_address": action_of(hook, "limits"),
        "limits": [
            ("Networks", ", ".join(rules.allowed_networks) or "every network"),
            ("Methods", " and ".join(rules.methods)),
            ("Largest payload", f"{rules.max_body_bytes:,} bytes"),
            ("Duplicates", _DUPLICATES[rules.idempotency]),
            ("Calls", _calls_in_words(rules)),
            ("Runs at the same time", "unlimited" if runs is None else f"{runs:,}"),
            ("Reply", _reply_in_words(rules)),
            ("Attempts of a queued run", f"{rules.max_attempts}"),
        ],
    }


def _reply_in_words(rules: CallRules) -> str:
    if rules.reply_mode == ReplyMode.SCRIPT:
        return "the script's"
    return f"{rules.accepted_status} as soon as the run is queued"


def _calls_in_words(rules: CallRules) -> str:
    if rules.calls_per_minute is None:
        return "unlimited"
    return f"{rules.calls_per_minute:,} a minute, {rules.burst:,} at once"
