"""Typed versions of Unfold's decorators, coloured labels, and texts for empty lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from unfold import decorators
from unfold.enums import ActionVariant

Method = TypeVar("Method", bound=Callable[..., Any])

SUCCESS, INFO, WARNING, DANGER, PLAIN = "success", "info", "warning", "danger", ""


def display(
    *, description: str, ordering: str | None = None, label: Mapping[str, str] | None = None
) -> Callable[[Method], Method]:
    """Declares a column or read-only field; ``label`` maps its values to colours."""
    decorator: Callable[[Method], Method] = decorators.display(
        description=description, ordering=ordering, label=label
    )
    return decorator


def action(
    *,
    description: str,
    icon: str,
    permissions: Sequence[str] | None = None,
    variant: ActionVariant = ActionVariant.DEFAULT,
) -> Callable[[Method], Method]:
    """Declares a button on an object's page.

    A permission ``x`` calls ``has_x_permission(request, object_id)``, which also hides the button.
    """
    decorator: Callable[[Method], Method] = decorators.action(
        description=description, icon=icon, permissions=permissions, variant=variant
    )
    return decorator


def label(text: str, colour: str) -> SafeString:
    return mark_safe(  # noqa: S308  (rendered by an escaping template)
        render_to_string("unfold/helpers/label.html", {"text": text, "type": colour}).strip()
    )


_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def size_text(count: int) -> str:
    """Formats a number of bytes in the largest fitting unit: “412 MiB”, “1.5 GiB”."""
    size = float(max(count, 0))
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    digits = 1 if unit and size < 10 else 0
    return f"{size:.{digits}f}".removesuffix(".0") + f"\N{NO-BREAK SPACE}{_UNITS[unit]}"


class EmptyState(NamedTuple):
    """The text of an empty list: why it is empty, and the next step.

    ``page`` is the name of the admin page that the button opens; without it there is no button.
    ``title`` is for lists that show only some of the rows.
    """

    text: str
    button: str = ""
    page: str = ""
    title: str = ""
