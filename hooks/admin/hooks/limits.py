"""The limits of a hook's calls: networks, methods, sizes, duplicates, runs at once, attempts."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import URLPattern, path
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from core.admin.confirmation import done
from core.admin.flow_forms import RevisionForm, is_saved
from core.admin.links import action_of
from core.http.origin import origin_of
from hooks.admin.hooks.sender import SenderPages
from hooks.flows.hooks import update_hook
from hooks.models import Hook
from hooks.rule_values import preset_of
from hooks.rules import (
    GROUPS,
    RULES,
    Applies,
    CallRules,
    HookRule,
    rules_in_force,
    value_in_force,
)


class LimitsForm(RevisionForm):
    """The rules of a hook. Empty fields stand for defaults."""

    def __init__(self, hook: Hook, data: QueryDict | None) -> None:
        initial = {rule.name: _initial(rule, hook) for rule in RULES}
        super().__init__(hook.revision, data, initial=initial)
        in_force = rules_in_force(hook)
        self.fields |= {rule.name: _field_of(rule, in_force) for rule in RULES}

    def groups(self) -> list[tuple[str, list[tuple[str, forms.BoundField]]]]:
        """Headings with their fields, each with where it applies; one with an error is shown."""
        return [
            (
                title,
                [
                    (Applies.ALWAYS if self[rule.name].errors else rule.applies, self[rule.name])
                    for rule in RULES
                    if rule.group == title
                ],
            )
            for title in GROUPS
        ]

    def changes(self) -> dict[str, Any]:
        """The values as ``update_hook`` takes them."""
        return {rule.name: _given(rule, self.cleaned_data[rule.name]) for rule in RULES}


def _missing(hook: Hook) -> set[str]:
    """What the hook's sender lacks, so that fields mean nothing."""
    preset = preset_of(hook)
    if preset is None:
        return {Applies.SENDER, Applies.SIGNED_TIME}
    return set() if preset.has_timestamp else {Applies.SIGNED_TIME}


def _field_of(rule: HookRule, in_force: CallRules) -> forms.Field:
    texts: dict[str, Any] = {"label": rule.label, "required": False, "help_text": rule.help}
    if rule.kind is bool:
        return forms.BooleanField(**texts, widget=UnfoldBooleanWidget)
    if rule.kind is list and rule.choices:
        return forms.MultipleChoiceField(
            **texts, choices=rule.choices, widget=UnfoldAdminCheckboxSelectMultipleWidget
        )
    if rule.choices:
        return forms.ChoiceField(**texts, choices=rule.choices, widget=UnfoldAdminSelectWidget)
    if rule.kind is list:
        return forms.CharField(**texts, widget=UnfoldAdminTextareaWidget({"rows": rule.rows}))
    if rule.kind is str:
        return forms.CharField(**texts, widget=UnfoldAdminTextInputWidget)
    widget = UnfoldAdminIntegerFieldWidget({"placeholder": rule.empty(in_force)})
    return forms.IntegerField(**texts, widget=widget)


def _initial(rule: HookRule, hook: Hook) -> Any:
    value = getattr(hook, rule.name)
    if rule.kind is not list:
        return value
    if rule.choices:
        return value_in_force(rule, hook)
    return "\n".join(value or ())


def _given(rule: HookRule, value: Any) -> Any:
    if rule.kind is not list:
        return value
    if rule.choices:
        return value
    return value.split() or None


class LimitsPage(SenderPages):
    """Adds the page of a hook's limits."""

    def get_urls(self) -> list[URLPattern]:
        limits = self.admin_site.admin_view(self.limits_view)
        page = path("<path:object_id>/limits/", limits, name="hooks_hook_limits")
        return [page, *super().get_urls()]

    def limits_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        hook: Hook = self.get_or_404(request, object_id)
        form = LimitsForm(hook, request.POST if request.method == "POST" else None)

        def save() -> None:
            expected = form.expected_revision
            update_hook(
                hook, origin=origin_of(request), expected_revision=expected, **form.changes()
            )

        if is_saved(form, save, hook):
            return done(self, request, hook, "Changed the limits.", "The settings are saved.")
        context = {"form": form, "missing": _missing(hook)}
        return self._form_page(request, hook, "admin/hook_settings.html", "Settings", context)


def limits_context(hook: Hook) -> dict[str, Any]:
    """The context of ``admin/parts/hook_limits.html``, on the hook's page."""
    in_force = rules_in_force(hook)
    return {
        "limits_address": action_of(hook, "limits"),
        "limits": [
            (rule.title or rule.label, rule.words(in_force)) for rule in RULES if rule.words
        ],
    }
