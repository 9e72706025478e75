"""What a script may ask of the process that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

Value = None | bool | int | float | bytes | list["Value"] | dict[bytes, "Value"]


# By their names in a message.
HOST_CALLS: Mapping[bytes, str] = {
    name.encode(): name
    for name in (
        "http.request",
        "store.get",
        "store.set",
        "store.delete",
        "store.increment",
        "secrets.get",
    )
}


class HostCallError(Exception):
    """A host call failed; the text is raised in the script as a Lua error."""


class HostHandler(Protocol):
    """Answers the host calls of one run, in the thread that called `SandboxPool.run`.

    Names and arguments, as the prelude sends them (strings are bytes, keys of a dict too):
        http.request   {method, url, headers: {name: value}, body?, timeout?}
                       -> {status, headers, body}
        store.get      key -> JSON text or None
        store.set      key, JSON text, ttl in seconds or None -> None
        store.delete   key -> None
        store.increment  key, by -> the new number
        secrets.get    name -> the secret or None

    Raises HostCallError for what the script may hear of. `deadline` is the instant of
    `time.monotonic()` at which the run ends: the handler bounds itself by it.
    """

    def __call__(self, name: str, args: list[Value], *, deadline: float) -> Value: ...
