"""Pinning a hook to one version of its script, and saying loudly that it is pinned."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, path
from unfold.widgets import UnfoldAdminSelectWidget

from core.admin.confirmation import done
from core.admin.flow_forms import RevisionForm, is_saved
from core.admin.links import action_of
from core.admin.times import exact
from core.http.origin import origin_of
from hooks.admin.hooks.limits import LimitsPage
from hooks.admin.scripts_and_runs import LIVE, pin_label
from hooks.flows.hooks import pin_hook
from hooks.models import Hook
from scripts_engine.models import ScriptVersion

# The newest are offered, and the one that the hook is pinned to.
_OFFERED = 100


class PinForm(RevisionForm):
    """The version that a hook runs. Empty: the live one."""

    version = forms.ChoiceField(
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Calls and waiting runs of this hook run it, whatever goes live later.",
    )

    def __init__(self, hook: Hook, data: QueryDict | None) -> None:
        initial = {"version": str(hook.pinned_version_id or "")}
        super().__init__(hook.revision, data, initial=initial)
        self._versions = {str(version.pk): version for version in _versions(hook)}
        choices = [(key, _in_words(version, hook)) for key, version in self._versions.items()]
        self.fields["version"].choices = [("", LIVE), *choices]  # type: ignore[attr-defined]

    def chosen(self) -> ScriptVersion | None:
        return self._versions.get(self.cleaned_data["version"])


def _versions(hook: Hook) -> list[ScriptVersion]:
    """Newest first."""
    published = hook.script.versions.filter(draft_of="", published_at__isnull=False)
    versions = list(published.order_by("-number")[:_OFFERED])
    pinned = hook.pinned_version
    return versions if pinned is None or pinned in versions else [*versions, pinned]


def _in_words(version: ScriptVersion, hook: Hook) -> str:
    live = ", live now" if version.pk == hook.script.current_version_id else ""
    return f"Version {version.number} of {exact(version.created_at)}{live}"


class PinPage(LimitsPage):
    """Adds the page that pins a hook."""

    def get_urls(self) -> list[URLPattern]:
        pin = self.admin_site.admin_view(self.pin_view)
        return [path("<path:object_id>/pin/", pin, name="hooks_hook_pin"), *super().get_urls()]

    def pin_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        form = PinForm(hook, request.POST if request.method == "POST" else None)

        def save() -> None:
            expected, origin = form.expected_revision, origin_of(request)
            pin_hook(hook, form.chosen(), origin=origin, expected_revision=expected)

        if is_saved(form, save, hook):
            version = form.chosen()
            words = "Unpinned." if version is None else f"Pinned to version {version.number}."
            return done(self, request, hook, words, words)
        context = {"form": form, "button": "Save"}
        return self._form_page(request, hook, "admin/hook_form.html", "Version", context)


def pin_context(hook: Hook) -> dict[str, Any]:
    """The context of ``admin/parts/hook_pin.html``, on the hook's page."""
    version = hook.pinned_version
    return {
        "pinned_version": version,
        "pin": pin_label(hook),
        "pin_address": action_of(hook, "pin"),
    }
