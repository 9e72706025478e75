"""What one page of the admin may take: a place among those made at once, and a time.

Both begin once the user is known and the request's body is read, and last until the page is
rendered: lists ask the database for their rows only then.
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

from core.http.bulkhead import Bulkhead, has_place, remember_place
from core.http.request_id import request_id_of
from core.http.unavailable import DATABASE_ERRORS, RETRY_AFTER_SECONDS
from core.metrics.catalogue import ADMIN_DEADLINES

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
    """Wrap a view of logged-in staff in ``ADMIN_AT_ONCE`` and ``ADMIN_DEADLINE``.

    Raises ``BulkheadFullError`` where no place is free.
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
    """The check for CSRF has read a form; a client may take its time with other bodies too."""
    if request.method == "POST" and request.content_type not in _FORMS:
        _ = request.body


def _key_of(request: HttpRequest) -> str:
    """Whose share of the places the request counts for.

    Administrators of several organisations count for one of them, always the same: their shares do
    not add up.
    """
    from accounts.admin.reach import (  # noqa: PLC0415  (models are loaded after the site)
        administered_organisation_ids,
        is_superuser,
    )

    if is_superuser(request):
        return _SUPERUSERS
    return str(min(administered_organisation_ids(request), default=""))


def _within_deadline(request: HttpRequest, make: Callable[[], HttpResponse]) -> HttpResponse:
    """The page, or a 503 that says how to ask for less.

    The deadline is lifted when the request begins to write: until then a 503 has changed nothing.
    """
    deadline = time.monotonic() + settings.ADMIN_DEADLINE_SECONDS
    with connection.statements_end_by(deadline, spares_writes=True) as is_over:  # type: ignore[attr-defined]
        try:
            return _rendered(make())
        except DATABASE_ERRORS:
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
