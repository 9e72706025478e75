"""Who calls a hook: choosing the sender, setting its signing secret, waiting for the first call."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_GET
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from accounts.admin.reach import person
from accounts.admin.tenancy import TenantModelAdmin
from core.admin import shown_once
from core.admin.confirmation import Question, ask, done, is_confirmed
from core.admin.flow_forms import RevisionForm, is_saved
from core.admin.links import action_of, page_of
from core.admin.times import exact
from core.http.origin import origin_of
from hooks.admin.hooks.day import newest_calls
from hooks.admin.refused_calls import refusals_of
from hooks.admin.scripts_and_runs import strength_label
from hooks.call_sender import OPTIONS, HmacOption, open_verify_token
from hooks.flows.senders import (
    delete_signing_secret,
    expect_handshake,
    set_sender,
    set_signing_secret,
)
from hooks.models import CredentialUse, Hook, SigningSecret
from hooks.rule_values import preset_of
from hooks.senders import PRESETS, Handshake, Preset, Strength

NOBODY = ""
_LATEST_HANDSHAKES = 5
_END = Question(
    title="Revoke signing secret",
    consequences=(
        "Calls that are signed with this secret are refused from now on. If it is the only one, "
        "every call is refused until you set another."
    ),
    button="Revoke secret",
)
_EXPECT = Question(
    title="Expect the handshake",
    consequences=(
        "For the next 10 minutes, the first handshake may bring the signing secret. Create the "
        "webhook at the sender right afterwards."
    ),
    button="Expect it",
)
_SECRET_INPUT = {"autocomplete": "off", "spellcheck": "false"}


class SecretInput(UnfoldAdminTextInputWidget):
    """Visible while it is pasted, and never sent back."""

    def format_value(self, value: Any) -> None:
        return None


class SenderForm(RevisionForm):
    """The signing secret of a sender, and the options of the sender “hmac”."""

    value = forms.CharField(
        label="Signing secret",
        required=False,
        max_length=2000,
        strip=False,
        widget=SecretInput(attrs=_SECRET_INPUT),
        help_text="Encrypted, and never shown again. White space around it is removed.",
    )

    def __init__(self, preset: Preset, *args: Any, has_secret: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not preset.takes_secret:
            del self.fields["value"]
        elif has_secret:
            self.fields["value"].help_text = "Leave it empty to keep the present secret."
        if preset.name == "hmac":
            self.fields = {**hmac_fields(), **self.fields}

    def hmac_options(self) -> dict[str, str | None] | None:
        names = hmac_fields()
        if "header" not in self.fields:
            return None
        return {name: self.cleaned_data[name] or None for name in names}


def hmac_fields() -> dict[str, forms.Field]:
    return {option.api_name: _field_of(option) for option in OPTIONS}


def _field_of(option: HmacOption) -> forms.Field:
    if option.choices:
        return forms.ChoiceField(
            label=option.label, choices=option.choices, widget=UnfoldAdminSelectWidget
        )
    return forms.CharField(
        label=option.label,
        help_text=option.help,
        required=option.is_required,
        max_length=500,
        strip=False,
        widget=UnfoldAdminTextInputWidget,
    )


class SigningSecretForm(forms.Form):
    value = forms.CharField(
        label="New signing secret",
        max_length=2000,
        strip=False,
        widget=SecretInput(attrs=_SECRET_INPUT),
        help_text="Encrypted, and never shown again. White space around it is removed.",
    )
    overlap_seconds = forms.TypedChoiceField(
        label="Keep the present secret valid for",
        coerce=int,
        initial=86_400,
        choices=[(86_400, "1 day"), (3_600, "1 hour"), (604_800, "7 days"), (0, "Revoke now")],
        widget=UnfoldAdminSelectWidget,
        help_text="Both are accepted until then. A third secret ends the oldest immediately.",
    )


@dataclass(frozen=True, slots=True)
class LiveSecret:
    name: str
    ends: str
    used: str
    end_address: str


class SenderPages(TenantModelAdmin):
    """Adds the pages that set who calls a hook."""

    def get_urls(self) -> list[URLPattern]:
        guard = self.admin_site.admin_view
        end_secret = path(
            "<path:object_id>/secret/<uuid:secret_id>/end/",
            guard(self.end_secret_view),
            name="hooks_hook_end_secret",
        )
        pages = {
            "sender": self.sender_view,
            "secret": self.secret_view,
            "expect": self.expect_view,
            "newest_call": require_GET(self.newest_call_view),
        }
        return [
            end_secret,
            *(
                path(f"<path:object_id>/{name}/", guard(view), name=f"hooks_hook_{name}")
                for name, view in pages.items()
            ),
            *super().get_urls(),
        ]

    def sender_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        name = request.POST.get("sender") if request.method == "POST" else request.GET.get("sender")
        name = hook.sender if name is None else name
        if name not in PRESETS and name != NOBODY:
            raise Http404
        if name == NOBODY:
            if request.method == "POST":
                return self._remove_sender(request, hook)
            return self._sender_page(request, hook, None, None)
        preset = PRESETS[name]
        initial = hook.hmac if name == hook.sender else None
        has_secret = name == hook.sender and hook.signing_secret_id is not None
        given = request.POST if request.method == "POST" else None
        form = SenderForm(preset, hook.revision, given, initial=initial, has_secret=has_secret)

        def save() -> None:
            origin, by = origin_of(request), person(request)
            set_sender(
                hook,
                sender=preset.name,
                hmac=form.hmac_options(),
                origin=origin,
                expected_revision=form.expected_revision,
            )
            if value := form.cleaned_data.get("value"):
                set_signing_secret(hook, value, origin=origin, by=by)

        if is_saved(form, save, hook):
            logged, told = f"Set the sender {preset.title}.", _saved(preset)
            return done(self, request, hook, logged, told)
        return self._sender_page(request, hook, preset, form)

    def _remove_sender(self, request: HttpRequest, hook: Hook) -> HttpResponse:
        form = RevisionForm(hook.revision, request.POST)

        def save() -> None:
            expected = form.expected_revision
            set_sender(hook, sender=None, origin=origin_of(request), expected_revision=expected)

        if not is_saved(form, save, hook):
            problems = [str(each) for errors in form.errors.values() for each in errors]
            self.message_user(request, " ".join(problems), messages.ERROR)
            return redirect(page_of(hook))
        return done(self, request, hook, "Removed the sender.", "Signatures are no longer checked.")

    def _sender_page(
        self, request: HttpRequest, hook: Hook, preset: Preset | None, form: SenderForm | None
    ) -> HttpResponse:
        token = hook.verify_token_ciphertext if preset and preset.name == hook.sender else None
        context = {
            "senders": sorted(PRESETS.values(), key=lambda each: each.title.lower()),
            "preset": preset,
            "strength": None if preset is None else strength_label(preset.strength),
            "form": form,
            "url": hook.url,
            "verify_token": None if token is None else open_verify_token(hook.pk, bytes(token)),
            "is_meta": preset is not None and preset.handshake is Handshake.META,
            "greets": preset is not None and preset.handshake is not Handshake.NONE,
        }
        return self._form_page(request, hook, "admin/hook_sender.html", "Who calls?", context)

    def secret_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        form = SigningSecretForm(request.POST if request.method == "POST" else None)

        def save() -> None:
            origin, by = origin_of(request), person(request)
            set_signing_secret(hook, **form.cleaned_data, origin=origin, by=by)

        if is_saved(form, save):
            logged, told = "Set a signing secret.", "The signing secret is set."
            return self._done_beside_url(request, hook, logged, told)
        context = {"form": form, "button": "Set secret", "call_token": _token_of(request, hook)}
        return self._form_page(
            request, hook, "admin/hook_form.html", "Replace signing secret", context
        )

    def end_secret_view(
        self, request: HttpRequest, object_id: str, secret_id: UUID
    ) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        secret = SigningSecret.objects.filter(hook=hook, pk=secret_id).live().first()
        if secret is None:
            raise Http404
        if not is_confirmed(request):
            return ask(self, request, _END, [hook])
        delete_signing_secret(secret, origin=origin_of(request), by=person(request))
        return done(
            self, request, hook, "Revoked a signing secret.", "The signing secret is revoked."
        )

    def expect_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _EXPECT, [hook])
        try:
            expect_handshake(hook, origin=origin_of(request), by=person(request))
        except ValidationError as error:
            self.message_user(request, " ".join(error.messages), messages.ERROR)
        else:
            logged, told = "Expects the handshake.", "Expected for 10 minutes."
            return self._done_beside_url(request, hook, logged, told)
        return redirect(page_of(hook))

    def _done_beside_url(
        self, request: HttpRequest, hook: Hook, logged: str, told: str
    ) -> HttpResponse:
        """Returns to the page that shows the URL, if the form came from there."""
        response = done(self, request, hook, logged, told)
        call_token = _token_of(request, hook)
        if not call_token:
            return response
        shown_once.keep(request, hook.secret_name, call_token)
        return redirect(action_of(hook, "issued"))

    def newest_call_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The newest call of each kind as JSON: ``{calls: [{state, text, ago, address, link}]}``.

        Takes no parameters.
        """
        if request.GET:
            raise Http404
        hook: Hook = self.get_or_404(request, object_id)
        response = JsonResponse({"calls": [call._asdict() for call in newest_calls(hook)]})
        response["Cache-Control"] = "no-store"
        return response

    def _form_page(
        self, request: HttpRequest, hook: Hook, template: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        response = TemplateResponse(
            request,
            template,
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": hook,
                "title": title,
                "hook_page": page_of(hook),
                **context,
            },
        )
        response["Cache-Control"] = "no-store"
        return response


def _saved(preset: Preset) -> str:
    if preset.strength not in (Strength.SIGNED, Strength.BODY_UNSIGNED):
        return "Saved."
    who = "the sender" if preset.name == "hmac" else preset.title
    return f"Saved. Calls must now be signed by {who}."


def sender_context(hook: Hook, *, with_addresses: bool) -> dict[str, Any]:
    """The context of ``admin/parts/hook_sender.html``, on the hook's page.

    ``with_addresses``: whether the person may know where calls come from.
    """
    preset = preset_of(hook)
    return {
        "preset": preset,
        "strength": None if preset is None else strength_label(preset.strength),
        "sender_address": action_of(hook, "sender"),
        "secret_address": action_of(hook, "secret"),
        "secrets": [] if preset is None else live_secrets(hook, with_addresses),
        "needs_secret": preset is not None and preset.takes_secret,
        "expect_address": action_of(hook, "expect") if is_secret_brought(hook, preset) else "",
        "expected_until": _expected_until(hook),
        "handshakes": hook.handshakes.all()[:_LATEST_HANDSHAKES],
        "tokens": token_uses(hook, with_addresses),
        "refusals": refusals_of(hook.pk),
    }


def _token_of(request: HttpRequest, hook: Hook) -> str:
    """The call token that the page with the URL sent along; empty if it is not the hook's."""
    call_token = request.POST.get("call_token", "")
    return call_token if call_token and hook.has_secret(call_token) else ""


def live_secrets(hook: Hook, with_addresses: bool) -> list[LiveSecret]:
    """Newest first."""
    uses = _uses(hook)
    return [
        LiveSecret(
            name="Newest" if number == 0 else "Before it",
            ends="" if secret.ends_at is None else exact(secret.ends_at),
            used=_use_in_words(uses.get(str(secret.pk)), with_addresses),
            end_address=action_of_secret(hook, secret),
        )
        for number, secret in enumerate(SigningSecret.objects.filter(hook=hook).live())
    ]


def action_of_secret(hook: Hook, secret: SigningSecret) -> str:
    return reverse("admin:hooks_hook_end_secret", args=[quote(hook.pk), secret.pk])


def token_uses(hook: Hook, with_addresses: bool) -> list[tuple[str, str]]:
    """Both call tokens and their use, while a rotation overlaps."""
    if hook.previous_good_until is None:
        return []
    uses = _uses(hook)
    return [
        ("New token", _use_in_words(uses.get(hook.digest), with_addresses)),
        ("Old token", _use_in_words(uses.get(hook.previous_digest), with_addresses)),
    ]


def _uses(hook: Hook) -> dict[str, CredentialUse]:
    return {use.credential: use for use in CredentialUse.objects.filter(hook=hook)}


def _use_in_words(use: CredentialUse | None, with_address: bool) -> str:
    if use is None:
        return "not used since it was set"
    times = "once" if use.count == 1 else f"{use.count:,} times"
    place = f" from {use.last_used_from or 'nowhere'}" if with_address else ""
    return f"used {times}, last at {exact(use.last_used_at)}{place}"


def is_secret_brought(hook: Hook, preset: Preset | None) -> bool:
    """Whether the sender's handshake may bring the signing secret."""
    is_brought = preset is not None and preset.handshake is Handshake.ASANA
    return is_brought and hook.signing_secret_id is None


def _expected_until(hook: Hook) -> str:
    until = hook.handshake_expected_until
    return "" if until is None or until <= timezone.now() else exact(until)
