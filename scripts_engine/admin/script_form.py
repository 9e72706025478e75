"""The form of a script, which compiles the source before anything is saved."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from unfold.widgets import UnfoldAdminTextareaWidget

from scripts_engine.errors import SourceError
from scripts_engine.flows.check_source import check_source
from scripts_engine.models import Script
from scripts_engine.sandbox.pool import SandboxBusy, SandboxUnavailable

_FIRST_SOURCE = """\
-- The reply is what the script returns; the payload is params.get("body").
local order = FromJson(params.get("body"))
log.info("order", order.id)
return {received = order.id}
"""


class ScriptForm(forms.ModelForm[Script]):
    """The fields of a script and its source, which makes a new version when it was changed."""

    source = forms.CharField(
        required=False,
        strip=False,
        widget=UnfoldAdminTextareaWidget(
            attrs={
                "class": "source-code",
                "rows": 20,
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
            }
        ),
        help_text=(
            'Lua 5.4. params.get("body") is the payload; what the script returns is the reply: '
            "nothing, a string, a table (sent as JSON) or Reply{status=…, headers={…}, body=…}. "
            "Saving compiles it and keeps the version before."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "source" in self.fields:
            is_new = self.instance._state.adding
            self.initial["source"] = _FIRST_SOURCE if is_new else self.instance.source

    def clean_source(self) -> str:
        """With the line ends that Lua's own messages count; browsers send CRLF."""
        source: str = self.cleaned_data["source"]
        return source.replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        organisation = cleaned.get("organisation", getattr(self.instance, "organisation", None))
        if organisation is not None and "source" in cleaned and self.has_new_source:
            self._compile(organisation, cleaned["source"], cleaned.get("name", ""))
        return cleaned

    @property
    def has_new_source(self) -> bool:
        return self.cleaned_data["source"] != self.instance.source

    def _compile(self, organisation: Any, source: str, name: str) -> None:
        try:
            check_source(organisation, source, name)
        except SourceError as error:
            self.add_error("source", ValidationError(_with_line(error), code="syntax"))
        except ValidationError as error:
            self.add_error(None, error)
        except (SandboxBusy, SandboxUnavailable):
            self.add_error(
                "source",
                ValidationError(
                    "No sandbox came free to compile this. Nothing was saved; save again.",
                    code="busy",
                ),
            )


def _with_line(error: SourceError) -> str:
    """Lua's own message, with the line in words in the place of script name and number."""
    if error.line is None:
        return error.message
    _, found, message = error.message.partition(f":{error.line}: ")
    return f"Line {error.line}: {message if found else error.message}"
