"""Coloured words for table cells."""

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

SUCCESS, INFO, WARNING, DANGER, PLAIN = "success", "info", "warning", "danger", ""


def label(text: str, colour: str) -> SafeString:
    return mark_safe(  # noqa: S308  (rendered by an escaping template)
        render_to_string("unfold/helpers/label.html", {"text": text, "type": colour}).strip()
    )
