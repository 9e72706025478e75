"""Host calls of a run that leaves no record: http only."""

import uuid
from typing import Any

from scripts_engine.host.handler import RunHost
from scripts_engine.host.http import METHOD_OF
from scripts_engine.sandbox.contract import CallNote, HostCallError

_ALLOWED = frozenset({"http.request", *METHOD_OF})


class UnrecordedHost:
    """The ``HostHandler`` of a run that is not recorded.

    Without a record nobody could see later which secrets a script read, or why a stored value
    changed, or where queued work comes from. So it gets none of these.
    """

    revealed_secrets: frozenset[bytes] = frozenset()

    def __init__(self, organisation_id: uuid.UUID) -> None:
        self._host = RunHost(organisation_id)

    def __call__(self, name: str, args: list[Any], *, deadline: float, note: CallNote) -> Any:
        if name not in _ALLOWED:
            raise HostCallError(f"{name[:40]}: save the script first; it works in recorded runs")
        return self._host(name, args, deadline=deadline, note=note)
