"""The form of a schedule. Errors from the flows appear at their field; no input is lost."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.models import User
from core.http.origin import Origin
from scripts_engine.flows.schedules.cron import known_time_zones
from scripts_engine.flows.schedules.schedules import (
    MAX_PAYLOAD_BYTES,
    create_schedule,
    update_schedule,
)
from scripts_engine.models import Schedule


def _time_zones() -> list[tuple[str, str]]:
    return [(name, name) for name in ("UTC", *sorted(known_time_zones() - {"UTC"}))]


class ScheduleForm(forms.ModelForm[Schedule]):
    """Saves through the flows, as the last step of validation."""

    origin: Origin
    by: User

    cron = forms.CharField(
        widget=UnfoldAdminTextInputWidget(
            attrs={"placeholder": "0 6 * * MON-FRI", "autocomplete": "off", "spellcheck": "false"}
        ),
        help_text=(
            "Minute, hour, day of month, month, day of week. L is the month’s last day, MON#2 its "
            "second Monday, 5L its last Friday."
        ),
    )
    time_zone = forms.ChoiceField(
        choices=_time_zones,
        initial="UTC",
        widget=UnfoldAdminSelectWidget,
        help_text="The clock that the fields are read by, with its daylight saving time.",
    )
    # The column holds bytes, which forms of models leave out.
    body = forms.CharField(
        label="Payload",
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            attrs={"rows": 4, "class": "source-code", "spellcheck": "false"}
        ),
        help_text=f'params.get("body") of each run; at most {MAX_PAYLOAD_BYTES // 1024} KiB.',
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["body"] = bytes(self.instance.payload).decode("utf-8", "replace")

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        fields = {
            name: value for name, value in self.cleaned_data.items() if name != "organisation"
        }
        # Browsers send line ends of their own.
        fields["payload"] = fields.pop("body").replace("\r\n", "\n").encode("utf-8", "replace")
        try:
            self.instance = self._save_by_flow(fields)
        except ValidationError as error:
            for name, messages in error.message_dict.items():
                shown = "body" if name == "payload" else name
                self.add_error(shown if shown in self.fields else None, messages)

    def _save_by_flow(self, fields: dict[str, Any]) -> Schedule:
        if self.instance._state.adding:
            return create_schedule(fields.pop("script"), origin=self.origin, by=self.by, **fields)
        return update_schedule(self.instance, origin=self.origin, by=self.by, **fields)
