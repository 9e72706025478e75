"""What a resolver knows of its request."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from config.http.bulkhead import Place


@dataclass(frozen=True, slots=True)
class GraphQLContext:
    """``info.context``. ``session`` is what the door returned, ``None`` where it was not asked.

    The document holds the ``place``. ``counts`` of lists are shared by all its fields.
    """

    request: HttpRequest
    session: Any
    place: Place
    counts: dict[Hashable, Any] = field(default_factory=dict)
