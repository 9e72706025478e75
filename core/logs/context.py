"""The log context: values that every log line of the current request or task includes."""

import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import structlog
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.signals import log_task_finished, log_task_started, task_finished, task_started

from core.http.origin import NamedRequest, request_id_of

_bound: ContextVar[Mapping[str, Any]] = ContextVar("bound", default=MappingProxyType({}))
REQUEST_ID = "request_id"

logger = structlog.get_logger(__name__)


def bind(**values: Any) -> None:
    """Adds the values to the context, until ``unbind_all``."""
    _bound.set({**_bound.get(), **values})


@contextmanager
def binding(**values: Any) -> Iterator[None]:
    """Adds the values to the context for the length of the block."""
    token = _bound.set({**_bound.get(), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def bind_only(**values: Any) -> None:
    """Replaces the context by the values."""
    _bound.set(values)


def unbind_all() -> None:
    _bound.set({})


def bound() -> Mapping[str, Any]:
    return _bound.get()


def add_bound(
    logger: object, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Processor for structlog: adds the context to the event, whose own values win."""
    for name, value in _bound.get().items():
        event.setdefault(name, value)
    return event


def bind_request(request_id: str) -> None:
    # Cleared here and not at the end: the access line is written after the reply is sent.
    bind_only(request_id=request_id)


class RequestContext:
    """Middleware that binds the request's id and, once known, its user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        bind_request(request_id_of(request))
        response = self._get_response(request)
        _bind_user(request)
        return response


def _bind_user(request: NamedRequest) -> None:
    """Binds the user's id if the view has looked the user up.

    A query made for the log alone could fail while a database failure is being answered.
    """
    user = getattr(request, "_cached_user", None)
    if user is not None and user.pk:
        bind(user_id=user.pk)


def follow_requests() -> None:
    """Logs uncaught exceptions only: the access log has a line for every request."""
    got_request_exception.connect(_log_request_failure)


def _log_request_failure(sender: Any, request: NamedRequest, **kwargs: Any) -> None:
    _bind_user(request)
    # Without the query, which may hold secrets of others.
    described = f"{request.method} {request.path}"
    logger.error("request_failed", code=500, request=described, exc_info=sys.exc_info())


def follow_tasks() -> None:
    """Binds each task's context while it runs, and logs its end instead of the task library."""
    task_started.disconnect(log_task_started)
    task_finished.disconnect(log_task_finished)
    task_started.connect(_bind)
    task_finished.connect(_finish)


def _bind(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    bind_only(task=task_result.id, task_name=task_result.task.name)
    # Passed by the request that enqueued the task, so that both share one id in the log.
    if request_id := task_result.kwargs.get(REQUEST_ID):
        bind(request_id=request_id)
    logger.debug("Task started")


def _finish(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    if task_result.status == TaskResultStatus.FAILED:
        # The signal is sent from the except block, so the traceback is available here.
        logger.error("Task failed", exc_info=sys.exc_info())
    else:
        logger.info("Task succeeded", duration_ms=_duration_ms(task_result))
    unbind_all()


def _duration_ms(result: TaskResult[Any]) -> float | None:
    if result.started_at is None or result.finished_at is None:
        return None
    return round((result.finished_at - result.started_at).total_seconds() * 1000, 3)
