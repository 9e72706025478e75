"""What a resolver knows of its request."""

from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from core.http.bulkhead import Place


@dataclass(frozen=True, slots=True)
class GraphQLContext:
    """``info.context``. ``session`` is what the door returned, ``None`` where it was not asked.

    The document holds the ``place``, if it is not a small one. ``counts`` of lists are shared by
    all its fields.
    """

    request: HttpRequest
    session: Any
    place: Place | None
    counts: dict[Hashable, Any] = field(default_factory=dict)

    def place_left_to_others(self) -> AbstractContextManager[None]:
        """Without the document's place, ``with`` this: for a wait that another limit bounds."""
        return nullcontext() if self.place is None else self.place.left_to_others()
