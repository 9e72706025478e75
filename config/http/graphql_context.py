"""What a resolver knows of its request."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class GraphQLContext:
    """``info.context``. ``session`` is what the door returned, ``None`` where it was not asked.

    ``counts`` of lists are shared by all fields of the document.
    """

    request: HttpRequest
    session: Any
    counts: dict[Hashable, Any] = field(default_factory=dict)
