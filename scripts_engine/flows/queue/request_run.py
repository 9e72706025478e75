"""Queues a run on request of a person or a program."""

from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.queue.enqueue import (
    MAX_DELAY_SECONDS,
    MAX_KEY_CHARACTERS,
    Enqueued,
    QueuedWork,
    enqueue,
)
from scripts_engine.flows.rule_values import invalid
from scripts_engine.models import Script, Trigger


def request_run(
    script: Script,
    *,
    event: Event,
    author: Author,
    delay_seconds: int = 0,
    key: str | None = None,
) -> Enqueued:
    """Queues a run of the script, due after the delay of at most 30 days.

    A ``key`` that queued a run of the script within 24 hours finds that run. Raises
    ``ValidationError`` by field, or ``QueueFullError``.
    """
    if not 0 <= delay_seconds <= MAX_DELAY_SECONDS:
        raise invalid("delay_seconds", f"Enter 0 to {MAX_DELAY_SECONDS:,} seconds.")
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise invalid("key", f"Enter 1 to {MAX_KEY_CHARACTERS} characters.")
    work = QueuedWork(
        organisation_id=script.organisation_id,
        script_id=script.pk,
        version_id=script.current_version_id,
        event=event,
        trigger=Trigger.QUEUE,
        started_by=author,
        delay_seconds=delay_seconds,
    )
    return enqueue(work, key=key or "")
