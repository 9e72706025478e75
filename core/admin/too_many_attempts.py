"""The admin page for a user who has hit a rate limit."""

from http import HTTPStatus
from math import ceil

from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers

from core.errors import RateLimitedError


def too_many_attempts(request: HttpRequest, limited: RateLimitedError, why: str) -> HttpResponse:
    """Returns 429 with ``Retry-After``. ``why`` is a sentence that names the limit."""
    seconds = limited.retry_after_seconds
    page = render(
        request,
        "admin/too_many_attempts.html",
        {
            **site.each_context(request),
            "title": "Too many attempts",
            "why": why,
            "minutes": ceil(seconds / 60),
        },
        status=HTTPStatus.TOO_MANY_REQUESTS,
    )
    page["Retry-After"] = str(seconds)
    add_never_cache_headers(page)
    return page
