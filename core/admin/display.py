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


class EmptyState(NamedTuple):
    """The text of an empty list: why it is empty, and the next step.

    ``page`` is the name of the admin page that the button opens; without it there is no button.
    ``title`` is for lists that show only some of the rows.
    """

    text: str
    button: str = ""
    page: str = ""
    title: str = ""
