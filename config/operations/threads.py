"""What a web worker builds before its first request, because the first requests come at once.

In the worker itself, after the fork: connections and sandboxes are a process's own.
"""

from django.template import engines
from django.urls import get_resolver

from accounts.rate_limits.limiter import build_limiters
from scripts_engine.sandbox_pool import sandbox_pool


def build_what_threads_share() -> None:
    # Imports every view, and with them what views import.
    get_resolver().url_patterns  # noqa: B018
    engines.all()
    build_limiters()
    sandbox_pool()
