"""What a resolver knows of its request."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest


@dataclass(frozen=True, slots=True)
class GraphQLContext:
    """``info.context``. ``session`` is what the door returned, ``None`` where it was not asked."""

    request: HttpRequest
    session: Any
