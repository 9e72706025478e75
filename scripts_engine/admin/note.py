"""The note of a release, which says what it is for."""

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from scripts_engine.models.release import MAX_NOTE_CHARACTERS


class NoteForm(forms.Form):
    note = forms.CharField(
        required=False,
        max_length=MAX_NOTE_CHARACTERS,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        label="Note (optional)",
        help_text="What the release is for. The Releases page shows it.",
    )
