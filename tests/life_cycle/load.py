"""Clients that send requests until they are stopped."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from tests.sessions import ANSWER_SECONDS

RUN_ID = "Moonhook-Run-Id"
Result = TypeVar("Result")


class Refused(Exception):
    """The answer says that it was not done."""


@dataclass
class Load:
    url: str
    host: str | None = None
    """The Host header, where that is not what the address says."""
    pause_seconds: float = 0.0
    """After each call of a caller."""
    runs: list[str] = field(default_factory=list)
    """Those that answers have named."""
    without_run: list[int] = field(default_factory=list)
    """The statuses of answers that have named none."""
    statuses: set[int] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, *, callers: int = 4) -> Iterator["Load"]:
        """Half of the callers keep their connections, half open one for each call."""
        threads = [
            threading.Thread(target=self._call_on, args=(number % 2 == 0,))
            for number in range(callers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join(ANSWER_SECONDS)

    def _call_on(self, keeps_connection: bool) -> None:
        address = urlsplit(self.url)
        headers = {"Host": self.host} if self.host else {}
        connection = http.client.HTTPConnection(
            address.hostname or "", address.port, timeout=ANSWER_SECONDS
        )
        while not self.is_over.is_set():
            try:
                connection.request("POST", address.path, b"{}", headers)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{type(error).__name__}: {error}")
                connection.close()
                self.is_over.wait(0.05)
                continue
            self.statuses.add(response.status)
            if (run := response.headers[RUN_ID]) is None:
                self.without_run.append(response.status)
            else:
                self.runs.append(run)
            if not keeps_connection:
                connection.close()
            self.is_over.wait(self.pause_seconds)
        connection.close()


@dataclass
class Repeated(Generic[Result]):
    """Does something over and over; what cannot be done while a server is away is left out."""

    action: Callable[[], Result]
    results: list[Result] = field(default_factory=list)

    @contextmanager
    def running(self, *, pause_seconds: float) -> Iterator["Repeated[Result]"]:
        is_over = threading.Event()

        def repeat() -> None:
            while not is_over.wait(pause_seconds):
                try:
                    self.results.append(self.action())
                except (OSError, http.client.HTTPException, Refused):
                    continue

        thread = threading.Thread(target=repeat)
        thread.start()
        try:
            yield self
        finally:
            is_over.set()
            thread.join(ANSWER_SECONDS)
