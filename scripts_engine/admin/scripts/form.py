"""The form of a script. Errors from the flows appear at their field; no input is lost."""

from typing import Any

from django import forms
from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django_ace import AceWidget

from core.errors import RateLimitedError
from core.http.origin import Origin
from scripts_engine.errors import SourceError
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import create_script, update_script
from scripts_engine.flows.source import with_lua_line_ends
from scripts_engine.models import Script
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable


class LuaEditor(AceWidget):
    """Ace editor for Lua; a plain text area without JavaScript."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            mode="lua",
            width=None,
            height=None,
            toolbar=False,
            showprintmargin=False,
            tabsize=2,
            # Ace checks for Lua 5.1; the page asks the sandbox's own compiler instead.
            useworker=False,
            basicautocompletion=True,
            liveautocompletion=True,
            **kwargs,
        )

    @property
    def media(self) -> forms.Media:
        files = (
            "django_ace/ace/ext-searchbox.js",
            "django_ace/ace/theme-github_light_default.js",
            "django_ace/ace/theme-github_dark.js",
            "moonhook/lua_warnings.js",
            "moonhook/lua_editor.js",
        )
        widget: forms.Media = super().media
        return widget + forms.Media(js=files, css={"screen": ["moonhook/script.css"]})


FIRST_SOURCE = """\
-- The reply is what the script returns; the payload is params.get("body").
local order = FromJson(params.get("body"))
log.info("order", order.id)
return {received = order.id}
"""


class ScriptForm(forms.ModelForm[Script]):
    """A script's settings and its source; a changed source becomes a new version."""

    author: Author
    origin: Origin

    source = forms.CharField(
        required=False,
        strip=False,
        widget=LuaEditor(
            attrs={
                "class": "source-code",
                "rows": 20,
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
            }
        ),
        help_text=(
            'Lua 5.4. params.get("body") is the payload; the returned value is the reply: nil, '
            "a string, a table (sent as JSON) or Reply{status=…, headers={…}, body=…}. "
            "Ctrl-Space completes, Ctrl-Enter runs, Ctrl-S saves. Saving checks the code and keeps "
            "earlier versions. Esc, then Tab leaves the editor; Enter returns to it."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "source" in self.fields:
            is_new = self.instance._state.adding
            self.initial["source"] = FIRST_SOURCE if is_new else self.instance.source

    def clean_source(self) -> str:
        return with_lua_line_ends(self.cleaned_data["source"])

    def _post_clean(self) -> None:
        """Saves through the flows as the last step of validation: they compile the source."""
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            self._save_by_flow()
        except SourceError as error:
            self.add_error("source", ValidationError(_with_line(error), code="syntax"))
            self.fields["source"].widget.attrs |= {
                "data-error-line": error.line,
                "data-error": error.flaw,
            }
        except ValidationError as error:
            self.add_error(None, error)
        except RateLimitedError as error:
            self.add_error("source", ValidationError(saved_too_often(error), code="rate-limited"))
        except (SandboxBusy, SandboxUnavailable):
            self.add_error(
                "source",
                ValidationError(
                    "No sandbox slot became free to compile this. Nothing was saved; save again.",
                    code="busy",
                ),
            )

    def _save_by_flow(self) -> None:
        data = self.cleaned_data
        settings = {name: data[name] for name in ("timeout_seconds", "is_enabled")}
        script: Script = self.instance
        if not script._state.adding:
            source = data["source"] if data["source"] != script.source else None
            update_script(
                script,
                author=self.author,
                source=source,
                origin=self.origin,
                name=data["name"],
                **settings,
            )
            return
        with transaction.atomic():
            created = create_script(
                script.organisation,
                name=data["name"],
                source=data["source"],
                author=self.author,
                origin=self.origin,
            )
            self.instance = update_script(
                created, author=self.author, origin=self.origin, **settings
            )


def saved_too_often(error: RateLimitedError) -> str:
    most, seconds = django_settings.SCRIPT_SAVES_PER_MINUTE, error.retry_after_seconds
    return (
        f"A script can be saved {most} times a minute. Nothing was saved; try again in {seconds} s."
    )


def _with_line(error: SourceError) -> str:
    where = "" if error.line is None else f"Line {error.line}: "
    return where + error.flaw
