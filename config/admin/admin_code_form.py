from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget


class CodeForm(forms.Form):
    """A code of the second factor."""

    code = forms.CharField(
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            attrs={
                "autocomplete": "one-time-code",
                "autocapitalize": "off",
                "spellcheck": "false",
                "autofocus": "",
            }
        ),
    )

    def __init__(self, *args: Any, label: str = "Code", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = label

    def refuse(self) -> None:
        self.add_error(
            "code", "This code is wrong, or was used already. Wait for the next one and try again."
        )

    def ask_to_wait(self, seconds: int) -> None:
        unit = "second" if seconds == 1 else "seconds"
        self.add_error("code", f"Too many wrong codes. Try again in {seconds} {unit}.")
