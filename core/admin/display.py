"""How the admin shows things: Unfold's decorators typed, coloured words, empty lists."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from unfold import decorators
from unfold.enums import ActionVariant

Method = TypeVar("Method", bound=Callable[..., Any])


def display(
    *, description: str, ordering: str | None = None, label: Mapping[str, str] | None = None
) -> Callable[[Method], Method]:
    """A column or a read-only field; ``label`` gives its values colours."""
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
    """A button on an object's page.

    A permission ``x`` asks ``has_x_permission(request, object_id)``, and hides the button too.
    """
    decorator: Callable[[Method], Method] = decorators.action(
        description=description, icon=icon, permissions=permissions, variant=variant
    )
    return decorator


SUCCESS, INFO, WARNING, DANGER, PLAIN = "success", "info", "warning", "danger", ""


def label(text: str, colour: str) -> SafeString:
    return mark_safe(  # noqa: S308  (rendered by an escaping template)
        render_to_string("unfold/helpers/label.html", {"text": text, "type": colour}).strip()
    )


class EmptyState(NamedTuple):
    """What an empty list says: why it is, and what to do next.

    ``page`` is the name of the admin page that the button leads to; without one, no button.
    """

    text: str
    button: str = ""
    page: str = ""
