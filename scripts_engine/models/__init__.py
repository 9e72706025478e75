from scripts_engine.models.call_rules import Idempotency, ReplyMode
from scripts_engine.models.credential_use import CredentialUse
from scripts_engine.models.failure_notice import FailureNotice
from scripts_engine.models.hook import Hook
from scripts_engine.models.idempotency_key import IdempotencyKey
from scripts_engine.models.queue_entry import PausedQueue, QueueEntry, QueueKey
from scripts_engine.models.refused_call import Handshake, RefusalCount, RefusedCall
from scripts_engine.models.run import Run, RunStatus, Trigger
from scripts_engine.models.run_lease import RunLease
from scripts_engine.models.schedule import (
    CatchUp,
    Overlap,
    Schedule,
    ScheduleTick,
    TickOutcome,
)
from scripts_engine.models.script import Script
from scripts_engine.models.script_version import ScriptVersion
from scripts_engine.models.secret import Secret
from scripts_engine.models.signing_secret import SigningSecret
from scripts_engine.models.stored_value import StoredValue

__all__ = [
    "CatchUp",
    "CredentialUse",
    "FailureNotice",
    "Handshake",
    "Hook",
    "Idempotency",
    "IdempotencyKey",
    "Overlap",
    "PausedQueue",
    "QueueEntry",
    "QueueKey",
    "RefusalCount",
    "RefusedCall",
    "ReplyMode",
    "Run",
    "RunLease",
    "RunStatus",
    "Schedule",
    "ScheduleTick",
    "Script",
    "ScriptVersion",
    "Secret",
    "SigningSecret",
    "StoredValue",
    "TickOutcome",
    "Trigger",
]
