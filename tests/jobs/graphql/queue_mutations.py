"""The mutations of the queue, and what they leave behind."""

from typing import Any

from django.utils import timezone

from accounts.models import AuthEvent
from hooks.models import Hook
from jobs.models import PausedQueue, QueueEntry, QueueKey
from scripts_engine.models import Run, Script
from tests.factories import (
    GraphQLAnswer,
    admin_graphql,
    make_past_run,
)

ENQUEUE = """mutation($script: ID!, $body: String, $delay: Int, $key: String) {
    enqueueRun(script: $script, body: $body, delaySeconds: $delay, key: $key) {
        id status trigger requestBody attempt dueAt startedAt durationMs responseStatus } }"""
REPLAY = """mutation($ids: [ID!], $filter: RunFilter) {
    replayRuns(ids: $ids, filter: $filter) }"""


def enqueue(script: Script, token: str, **variables: Any) -> GraphQLAnswer:
    return admin_graphql(ENQUEUE, token, script=str(script.pk), **variables)


def enqueued(script: Script, token: str, **variables: Any) -> Run:
    answer = enqueue(script, token, **variables)
    return Run.objects.get(pk=answer.data["enqueueRun"]["id"])


def failed(hook: Hook, body: bytes = b"payload", **fields: Any) -> Run:
    fields = {"attempt": 1, "is_dead_letter": False, "request_body": body, **fields}
    return make_past_run(hook, timezone.now(), **{"status": "failed", **fields})


def state() -> list[Any]:
    models = (Script, Hook, Run, QueueEntry, QueueKey, PausedQueue, AuthEvent)
    return [list(model.objects.order_by("pk").values()) for model in models]
