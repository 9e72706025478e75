"""Creating a hook on one page: who calls, then the URL with the sender's steps."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from zlib import crc32

from django import forms
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from core.admin.links import action_of
from hooks.admin.hooks.day import newest_calls
from hooks.admin.hooks.sender import (
    NOBODY,
    SecretInput,
    hmac_fields,
    is_secret_brought,
)
from hooks.admin.scripts_and_runs import strength_label
from hooks.call_sender import open_verify_token
from hooks.flows.senders import OVERLAP_SECONDS
from hooks.models import Hook
from hooks.rule_values import preset_of
from hooks.senders import PRESETS, Preset
from scripts_engine.models import Script

UNLISTED = "hmac"
_HUES = 8
_PLACES = re.compile("(the hook's URL|the hook's signing secret)")


class NewHookForm(forms.ModelForm[Hook]):
    """A hook without a name gets a free one."""

    sender = forms.ChoiceField(
        required=False,
        choices=[(NOBODY, "No sender"), *((name, each.title) for name, each in PRESETS.items())],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].required = False
        for name, field in hmac_fields().items():
            field.required = False
            self.fields[name] = field

    def sender_options(self) -> dict[str, str | None] | None:
        """The options of the sender ``hmac``; ``None`` for any other."""
        if self.cleaned_data["sender"] != UNLISTED:
            return None
        return {name: self.cleaned_data[name] or None for name in hmac_fields()}

    def hmac_rows(self) -> Iterator[forms.BoundField]:
        return (self[name] for name in hmac_fields())

    def known_script(self) -> Script | None:
        """The script that the address names, unless the form was sent."""
        chosen = (
            None if self.is_bound else self.get_initial_for_field(self.fields["script"], "script")
        )
        scripts: Any = self.fields["script"]
        return scripts.queryset.filter(pk=chosen).first() if chosen else None

    def tiles(self) -> list["Tile"]:
        """No sender, any sender with HMAC, then the others by title."""
        chosen = self["sender"].value()
        listed = [each for each in PRESETS.values() if each.name != UNLISTED]
        listed.sort(key=lambda each: each.title.lower())
        return [
            Tile(NOBODY, "No sender", "–", 0, chosen == NOBODY),
            Tile(UNLISTED, "Not listed: any sender with HMAC", "#", 1, chosen == UNLISTED),
            *(_tile(each, chosen) for each in listed),
        ]


class Tile(NamedTuple):
    """A sender to choose. Letters and a colour stand for its logo."""

    sender: str
    title: str
    letters: str
    hue: int
    is_chosen: bool


def _tile(preset: Preset, chosen: Any) -> Tile:
    capitals = "".join(re.findall("[A-Z]", preset.title))
    letters = capitals[:2] if len(capitals) > 1 else preset.title[:2]
    hue = crc32(preset.name.encode()) % _HUES
    return Tile(preset.name, preset.title, letters, hue, chosen == preset.name)


class FirstSecretForm(forms.Form):
    """The first signing secret of a hook, beside its URL."""

    value = forms.CharField(
        label="Signing secret of the sender",
        max_length=2000,
        widget=SecretInput({"autocomplete": "off", "spellcheck": "false"}),
        help_text="Encrypted, and never shown again. White space around it is removed.",
    )
    overlap_seconds = forms.IntegerField(initial=OVERLAP_SECONDS, widget=forms.HiddenInput)


def first_call_context(hook: Hook, url: str, signing_secret: str | None) -> dict[str, Any]:
    """What the page with a new URL says about the sender, and about the call that it waits for."""
    preset = preset_of(hook)
    waiting = {
        "newest_calls": newest_calls(hook),
        "newest_call_address": action_of(hook, "newest_call"),
    }
    if preset is None:
        return waiting
    token = hook.verify_token_ciphertext
    needs_secret = preset.takes_secret and hook.signing_secret_id is None
    is_brought = is_secret_brought(hook, preset)
    return waiting | {
        "preset": preset,
        "strength": strength_label(preset.strength),
        "steps": [_filled(step, url, signing_secret) for step in preset.steps],
        "signing_secret": signing_secret,
        "verify_token": None if token is None else open_verify_token(hook.pk, bytes(token)),
        "secret_form": FirstSecretForm() if needs_secret and not is_brought else None,
        "secret_address": action_of(hook, "secret"),
        "expect_address": action_of(hook, "expect") if is_brought else "",
    }


def _filled(step: str, url: str, signing_secret: str | None) -> SafeString:
    values = {"the hook's URL": url, "the hook's signing secret": signing_secret}
    shown = []
    for part in _PLACES.split(step):
        value = values.get(part)
        form = "{}" if value is None else '<code class="mh-value">{}</code>'
        shown.append(format_html(form, value or part))
    return format_html_join("", "{}", ((each,) for each in shown))
