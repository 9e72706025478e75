"""The page for who has to wait at the admin's door."""

from math import ceil
from typing import Any

from django.contrib.admin import site
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers

from config.admin_lockout import locked_until


def locked_out(
    request: HttpRequest, response: HttpResponse | None = None, credentials: Any = None
) -> HttpResponse:
    now = timezone.now()
    seconds = max(1, ceil(((locked_until(request) or now) - now).total_seconds()))
    page = render(
        request,
        "admin/locked_out.html",
        {
            **site.each_context(request),
            "title": "Too many attempts",
            "minutes": ceil(seconds / 60),
        },
        status=429,
    )
    page["Retry-After"] = str(seconds)
    add_never_cache_headers(page)
    return page
