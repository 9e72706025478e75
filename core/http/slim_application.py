"""A WSGI application beside Django's handler, for the frequent requests of machines.

These need no middleware, URL resolver or form, which cost more than what they ask for. The rules
that hold for every URL of the server are functions in core/, which Django's middleware uses too.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from http.client import responses as REASONS  # noqa: N812
from typing import Any, NamedTuple

from django.conf import settings
from django.core.signals import request_finished, request_started

from core.metrics.requests import RequestCounter

StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Answer(NamedTuple):
    view: str
    """The view's name for the metrics."""
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    after_reply: Iterable[Callable[[], None]] = ()
    """Called when the reply has been sent."""


class SlimApplication(ABC):
    """Thread-safe. Sends Django's signals."""

    def __init__(self) -> None:
        self._counter = RequestCounter() if settings.ARE_METRICS_ON else None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        started = time.perf_counter()
        request_started.send(sender=type(self), environ=environ)
        view, status, headers, body, after_reply = self._answer(environ)
        start_response(_status_line(status), headers)
        if self._counter is not None:
            seconds = time.perf_counter() - started
            self._counter.count(view, environ["REQUEST_METHOD"].upper(), status, seconds)
        return _Body(body, type(self), after_reply)

    @abstractmethod
    def _answer(self, environ: dict[str, Any]) -> Answer:
        """Answers the request, of which it binds the id to the log; raises no ``Exception``."""


class _Body(list[bytes]):
    """A body in one piece; the server closes it when it is sent."""

    def __init__(
        self,
        body: bytes,
        sender: type[SlimApplication],
        after_reply: Iterable[Callable[[], None]],
    ) -> None:
        super().__init__([body])
        self._sender = sender
        self._after_reply = after_reply

    def close(self) -> None:
        # Gives the database connection back.
        request_finished.send(sender=self._sender)
        for act in self._after_reply:
            act()


def _status_line(status: int) -> str:
    return f"{int(status)} {REASONS.get(status, 'Unknown Status Code')}"
