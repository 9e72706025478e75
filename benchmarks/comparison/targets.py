"""Targets: requests to a server, with their right responses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from benchmarks.comparison.requests import Request
from benchmarks.comparison.servers import Server

CHECKED_REQUESTS = 5


@dataclass(frozen=True)
class Target:
    """``requests`` are sent in turn; ``refused`` has a wrong secret.

    ``base`` names the target whose rate this one's is divided by. Two clients send ``beside`` all
    the while.
    """

    name: str
    server: Server
    requests: Sequence[Request]
    is_right: Callable[[Any], bool]
    base: str
    status: int = 200
    refused: Request | None = None
    beside: Request | None = None

    def check(self) -> None:
        """Raises ``WrongAnswerError``. Checks a few requests, evenly spread over all."""
        step = max(1, len(self.requests) // CHECKED_REQUESTS)
        for request in islice(self.requests, 0, None, step):
            request.require(self.status, self.is_right)
        if self.refused is not None:
            self.refused.require_refusal()
