"""What starts runs and belongs to an app above this one, such as a hook: by its id."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from accounts.models import Organisation
from scripts_engine.models import Run, Trigger


class Caller(NamedTuple):
    name: str
    is_deleted: bool
    page: str
    """The path of its page in the admin."""


class CallerSource(Protocol):
    def find(self, caller_ids: Collection[uuid.UUID]) -> Mapping[uuid.UUID, Caller]:
        """Those that exist, even if they are marked as deleted."""

    def belongs_to(self, caller_id: uuid.UUID, organisation: Organisation) -> bool: ...


_sources: list[CallerSource] = []


def register_callers(source: CallerSource) -> None:
    _sources.append(source)


def callers_of(runs: Iterable[Run]) -> dict[uuid.UUID, Caller]:
    """By the runs' ids, with one query a source."""
    wanted = {run.pk: run.hook_id for run in runs if run.hook_id is not None}
    if not wanted:
        return {}
    caller_ids = {*wanted.values()}
    found = {key: each for source in _sources for key, each in source.find(caller_ids).items()}
    return {run_id: found[key] for run_id, key in wanted.items() if key in found}


def name_triggers(runs: Sequence[Run]) -> list[tuple[Run, str]]:
    """Each run with the name of what started it: its hook, or the kind of trigger."""
    callers = callers_of([run for run in runs if run.trigger != Trigger.TEST])
    return [
        (run, callers[run.pk].name if run.pk in callers else str(run.get_trigger_display()))
        for run in runs
    ]


def is_caller_of(caller_id: uuid.UUID, organisation: Organisation) -> bool:
    return any(source.belongs_to(caller_id, organisation) for source in _sources)
