"""The page of an organisation, with its alert script."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.organisations import OrganisationAdmin
from accounts.models import Organisation
from core.admin.display import display
from core.admin.flow_forms import RowChoiceField
from core.admin.links import link_to
from core.http.origin import origin_of
from scripts_engine.admin.scripts.starters import ALERTS_TITLE
from scripts_engine.flows.alert_script import alert_script_of, set_alert_script
from scripts_engine.models import Script

_ALERT_SCRIPT = "alert_script"
_HELP = (
    "Is run when a script fails or works again, a queued run has failed for good, a schedule has "
    "missed ticks, an API key expires or a release is published. The example "
    f"“{ALERTS_TITLE}” of the script editor posts them to a chat."
)


class OrganisationForm(forms.ModelForm[Organisation]):
    alert_script = RowChoiceField(
        Script.objects.none(),
        required=False,
        empty_label="None",
        widget=UnfoldAdminSelectWidget(),
        help_text=_HELP,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Who only reads the page has a form without fields.
        if _ALERT_SCRIPT not in self.fields or self.instance._state.adding:
            return
        field: Any = self.fields[_ALERT_SCRIPT]
        scripts = Script.objects.of_organisation(self.instance).filter(is_library=False)
        field.queryset = scripts.order_by("name")
        chosen = alert_script_of(self.instance)
        if chosen is not None:
            self.initial[_ALERT_SCRIPT] = chosen.pk
            if not chosen.is_enabled:
                field.help_text = f"“{chosen}” is disabled, so nobody is told. {_HELP}"


@admin.register(Organisation)
class AlertedOrganisationAdmin(OrganisationAdmin):
    form = OrganisationForm
    fieldsets = (
        *OrganisationAdmin.fieldsets,
        ("When something breaks", {"fields": ("failure_mails", _ALERT_SCRIPT)}),
    )

    @display(description="Alert script")
    def alert_script(self, organisation: Organisation) -> SafeString | str:
        """For those who may not change it."""
        script = alert_script_of(organisation)
        return "None" if script is None else link_to(script)

    def save_by_flow(self, request: HttpRequest, form: Any, change: bool) -> Organisation:
        organisation = super().save_by_flow(request, form, change)
        if _ALERT_SCRIPT in form.changed_data:
            script = form.cleaned_data[_ALERT_SCRIPT]
            set_alert_script(organisation, script, origin=origin_of(request))
        return organisation
