"""Unfold's decorators, typed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

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
