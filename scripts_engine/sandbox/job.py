"""What is to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripts_engine.sandbox.limits import Limits


@dataclass(frozen=True, slots=True)
class Job:
    """One script and the call that it answers.

    `params` holds what `params.get` finds: body, method, query, content_type, remote_addr,
    run_id, hook_id, script_id, org_id; an absent one is nil in Lua. `headers` may repeat a
    name; the script sees the values joined with ", ". `trace_lines` names the line at which
    time ran out, and makes tight loops several times slower.
    """

    source: bytes
    chunk_name: str
    params: Mapping[str, bytes] = field(default_factory=dict)
    headers: Sequence[tuple[bytes, bytes]] = ()
    limits: Limits = field(default_factory=Limits)
    trace_lines: bool = False
