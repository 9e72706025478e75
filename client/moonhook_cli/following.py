"""Follows the runs that end, over restarts of the server, without missing or repeating any."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from moonhook_cli.errors import CommandError, UnreachableError
from moonhook_cli.server import Server

_POLL_SECONDS = 1
_LONGEST_WAIT_SECONDS = 15


class Reconnecting:
    """A server that is asked again while it is away, once it has answered.

    For queries alone: one that got no answer may have been executed. ``note`` tells a person.
    """

    def __init__(self, server: Server, note: Callable[[str], None]) -> None:
        self._server = server
        self._note = note
        self._has_answered = False

    def graphql(self, document: str, **variables: object) -> dict[str, Any]:
        wait = float(_POLL_SECONDS)
        is_away = False
        while True:
            try:
                data = self._server.graphql(document, **variables)
            except CommandError as error:
                if not self._has_answered or not _is_passing(error):
                    raise
                if not is_away:
                    self._note(f"{error.message} Trying again…")
                is_away = True
                time.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
                continue
            if is_away:
                self._note("The server answers again.")
            self._has_answered = True
            return data

    def pages(
        self, query: str, cursor: str | None, **variables: object
    ) -> Iterator[tuple[list[dict[str, Any]], bool]]:
        """Each page of `runsSince` and whether there are more now. Asks once a second at most."""
        while True:
            feed = self.graphql(query, cursor=cursor, **variables)["runsSince"]
            cursor = feed["cursor"]
            yield feed["nodes"], feed["hasMore"]
            if not feed["hasMore"]:
                time.sleep(_POLL_SECONDS)


def _is_passing(error: CommandError) -> bool:
    return isinstance(error, UnreachableError) or error.code in {"RATE_LIMITED", "rate-limited"}
