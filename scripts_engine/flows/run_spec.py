"""What to run, for whom and why."""

import uuid
from datetime import datetime
from typing import NamedTuple, Self

from scripts_engine.flows.author import NOBODY, Author
from scripts_engine.flows.rules_of_call import CallRules
from scripts_engine.models import Script, Trigger


class RunSpec(NamedTuple):
    """What to run, for whom and why."""

    organisation_id: uuid.UUID
    script_id: uuid.UUID | None
    """``None`` for a script that is not saved; its runs are not recorded."""
    script_name: str
    timeout_seconds: float
    version_id: uuid.UUID | None
    """``None`` for a source that is not saved."""
    source: str
    trigger: Trigger
    hook_id: uuid.UUID | None = None
    started_by: Author = NOBODY
    rules: CallRules | None = None
    """What the hook demands of its calls; ``None`` if nothing of it is set."""
    overlapping_digest: str = ""
    """The digest of the call's token, while the token before the last rotation is valid too."""
    attempt: int = 1
    first_run_id: uuid.UUID | None = None
    """The first attempt; ``None`` if this is the first."""
    scheduled_at: datetime | None = None
    """The schedule's tick."""
    chain_depth: int = 0
    """How many runs pushed one another until this one was pushed."""

    @classmethod
    def of_script(
        cls,
        script: Script,
        *,
        trigger: Trigger,
        hook_id: uuid.UUID | None = None,
        started_by: Author = NOBODY,
    ) -> Self:
        """A run of the script's current version."""
        return cls(
            organisation_id=script.organisation_id,
            script_id=script.pk,
            script_name=script.name,
            timeout_seconds=script.timeout_seconds,
            version_id=script.current_version_id,
            source=script.source,
            trigger=trigger,
            hook_id=hook_id,
            started_by=started_by,
        )
