"""How long the old secret stays good after a rotation."""

from datetime import timedelta

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget

_CHOICES = {
    "Not at all": timedelta(),
    "1 hour": timedelta(hours=1),
    "1 day": timedelta(days=1),
    "7 days": timedelta(days=7),
}


class OverlapForm(forms.Form):
    overlap_seconds = forms.TypedChoiceField(
        label="The old one stays good for",
        coerce=int,
        choices=[(int(time.total_seconds()), name) for name, time in _CHOICES.items()],
        widget=UnfoldAdminSelectWidget,
        help_text=(
            "Time to bring the new one to wherever the old one is used: both work meanwhile. "
            "“Not at all”, if the old one leaked."
        ),
    )
