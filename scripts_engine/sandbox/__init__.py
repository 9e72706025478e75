"""Runs untrusted Lua in locked-down processes. Imports neither Django nor the rest of the project.

Others import from here and from nowhere deeper; README.md introduces the library.

Parent and child share `contract` (job, host calls, outcome), `limits` and `protocol` (the frames
between them, and the log in shared memory). The path of a run:

    parent/, in the worker, trusted            child/, one process per tenant, untrusted
    pool           the entry point             fork_server    forks it, once per worker
      waiting        limits concurrent runs    lockdown       drops its privileges
      children       find or start a child     serving        receives the run, sends the outcome
      conversation   one run's exchange        runtime        the Lua state
        child_process  socket, kill, CPU       prelude/*.lua  what scripts can call
        child_frames   checks each frame       operations     Python functions of the prelude

Outside that path: `parent/waiting` has what a server adapts (who hears of events, how a run waits).
`child/runtime` lists everything that a script can reach, and `child/lockdown` the calls that its
process may make. `parent/layers` runs `child/probe`, which tries each layer of the lockdown;
`attacks/` are scripts and children that must not get through.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from scripts_engine.sandbox.contract import (
    NO_LIBRARIES,
    STATUSES_WITHOUT_BODY,
    CallNote,
    Fail,
    GlobalUse,
    GlobalUseKind,
    HostCall,
    HostCallError,
    HostHandler,
    Job,
    LayerName,
    Libraries,
    Library,
    LogLine,
    Outcome,
    OutcomeKind,
    Reply,
    Retry,
    ScriptError,
    Value,
)
from scripts_engine.sandbox.limits import (
    KIB,
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_LIBRARIES,
    MAX_LOG_BYTES,
    MAX_LOG_TEXT_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_PROGRAM_BYTES,
    MAX_PUSHED_BYTES,
    MAX_QUEUE_SECONDS,
    MAX_REPLY_BYTES,
    MAX_SOURCE_BYTES,
    MAX_TRACEBACK_BYTES,
    MAX_WALL_SECONDS,
    MIB,
    Limits,
    figure_in_words,
)

# The processes of the child import this package too: what only the parent needs is loaded on first
# use, or every child would hold it.
if TYPE_CHECKING:
    from scripts_engine.sandbox.attacks.hostile_child import WorkerAttack, child_attacks
    from scripts_engine.sandbox.attacks.suite import (
        Attack,
        NoAttacks,
        PairAttack,
        StateNotKept,
        pair_attacks,
        script_attacks,
        text_of,
    )
    from scripts_engine.sandbox.parent.layers import Layer, ProbeFailed, active_layers
    from scripts_engine.sandbox.parent.pool import (
        PoolStats,
        SandboxBusy,
        SandboxPool,
        SandboxUnavailable,
    )
    from scripts_engine.sandbox.parent.waiting import (
        BusyReason,
        FairSlots,
        KillReason,
        NoSlot,
        PoolObserver,
        Waiting,
        WakeUp,
    )
else:
    _LATER = {
        "attacks.hostile_child": "WorkerAttack child_attacks",
        "attacks.suite": (
            "Attack NoAttacks PairAttack StateNotKept pair_attacks script_attacks text_of"
        ),
        "parent.layers": "Layer ProbeFailed active_layers",
        "parent.pool": "PoolStats SandboxBusy SandboxPool SandboxUnavailable",
        "parent.waiting": ("BusyReason FairSlots KillReason NoSlot PoolObserver Waiting WakeUp"),
    }

    def __getattr__(name):
        for module, names in _LATER.items():
            if name in names.split():
                value = getattr(import_module(f"{__name__}.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "KIB",
    "MAX_HEADERS",
    "MAX_HEADER_BYTES",
    "MAX_LIBRARIES",
    "MAX_LOG_BYTES",
    "MAX_LOG_TEXT_BYTES",
    "MAX_MESSAGE_BYTES",
    "MAX_PROGRAM_BYTES",
    "MAX_PUSHED_BYTES",
    "MAX_QUEUE_SECONDS",
    "MAX_REPLY_BYTES",
    "MAX_SOURCE_BYTES",
    "MAX_TRACEBACK_BYTES",
    "MAX_WALL_SECONDS",
    "MIB",
    "NO_LIBRARIES",
    "STATUSES_WITHOUT_BODY",
    "Attack",
    "BusyReason",
    "CallNote",
    "Fail",
    "FairSlots",
    "GlobalUse",
    "GlobalUseKind",
    "HostCall",
    "HostCallError",
    "HostHandler",
    "Job",
    "KillReason",
    "Layer",
    "LayerName",
    "Libraries",
    "Library",
    "Limits",
    "LogLine",
    "NoAttacks",
    "NoSlot",
    "Outcome",
    "OutcomeKind",
    "PairAttack",
    "PoolObserver",
    "PoolStats",
    "ProbeFailed",
    "Reply",
    "Retry",
    "SandboxBusy",
    "SandboxPool",
    "SandboxUnavailable",
    "ScriptError",
    "StateNotKept",
    "Value",
    "Waiting",
    "WakeUp",
    "WorkerAttack",
    "active_layers",
    "child_attacks",
    "figure_in_words",
    "pair_attacks",
    "script_attacks",
    "text_of",
]
