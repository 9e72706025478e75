"""Limits on the pages of the admin: concurrency and database time.

Both apply from when the user is known and the body is read until the page is rendered, which is
when lists query their rows.
"""

import logging
import time
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from core.database.unavailable import DatabaseUnavailable
from core.http.bulkhead import Bulkhead, has_place, remember_place
from core.http.origin import request_id_of
from core.http.problem_handlers import RETRY_AFTER_SECONDS
from core.metrics.instruments import ADMIN_DEADLINES

logger = logging.getLogger(__name__)

View = Callable[..., HttpResponse]

_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
_SUPERUSERS = "superusers"

bulkhead = Bulkhead(
    "admin",
    limit=settings.ADMIN_AT_ONCE,
    limit_per_key=settings.ADMIN_AT_ONCE_PER_ORGANISATION,
    max_waiting=settings.ADMIN_WAITING,
    wait_seconds=settings.ADMIN_WAIT_SECONDS,
)


def bounded(view: View) -> View:
    """Apply ``ADMIN_AT_ONCE`` and ``ADMIN_DEADLINE`` to a view of logged-in staff.

    The view raises ``BulkheadFullError`` if no place is free.
    """

    @wraps(view)
    def bounded_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Some of Unfold's pages are wrapped twice.
        if has_place(request):
            return view(request, *args, **kwargs)
        _read_body(request)
        with bulkhead.place(_key_of(request)) as place:
            remember_place(request, place)
            return _within_deadline(request, lambda: view(request, *args, **kwargs))

    return bounded_view


def _read_body(request: HttpRequest) -> None:
    """Read the body before taking a place: a client may send it slowly. CSRF has read forms."""
    if request.method == "POST" and request.content_type not in _FORMS:
        _ = request.body


def _key_of(request: HttpRequest) -> str:
    """Return the organisation whose share of the places the request uses.

    People with roles in several organisations always use the share of the same one.
    """
    from accounts.admin.reach import (  # noqa: PLC0415  (models load after the site)
        is_superuser,
        organisation_ids,
    )

    if is_superuser(request):
        return _SUPERUSERS
    return str(min(organisation_ids(request), default=""))


def _within_deadline(request: HttpRequest, make: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the page, or a 503 that suggests a smaller request.

    The deadline ends at the first write, so a 503 never hides a change.
    """
    deadline = time.monotonic() + settings.ADMIN_DEADLINE_SECONDS
    with connection.statements_end_by(deadline, spares_writes=True) as is_over:  # type: ignore[attr-defined]
        try:
            return _rendered(make())
        except DatabaseUnavailable:
            if not is_over():
                raise
    return _too_slow(request)


def _rendered(response: HttpResponse) -> HttpResponse:
    if hasattr(response, "render"):
        response.render()
    return response


def _too_slow(request: HttpRequest) -> HttpResponse:
    ADMIN_DEADLINES.inc()
    logger.warning(
        "%s %s, request %s: stopped after %s seconds.",
        request.method,
        request.path,
        request_id_of(request),
        settings.ADMIN_DEADLINE_SECONDS,
    )
    response = render(
        request, "503.html", {"is_too_slow": True}, status=HTTPStatus.SERVICE_UNAVAILABLE
    )
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response
