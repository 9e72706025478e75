from typing import Any

from django import forms
from django_ace import AceWidget


class LuaEditor(AceWidget):
    """A source in Ace; without JavaScript, in a plain text area."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            mode="lua",
            width=None,
            height=None,
            toolbar=False,
            showprintmargin=False,
            tabsize=2,
            # Its checker knows Lua 5.1; ours is the compiler that will run the source.
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
            "moonhook/lua_editor.js",
        )
        widget: forms.Media = super().media
        return widget + forms.Media(js=files, css={"screen": ["moonhook/script.css"]})
