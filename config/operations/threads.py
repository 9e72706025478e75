"""Objects shared by a web worker's threads, built before the first requests arrive together.

They are built after the fork, since connections and sandboxes cannot be shared by processes.
"""

from django.template import engines
from django.urls import get_resolver

from accounts.rate_limits.limiter import build_limiters
from scripts_engine.sandbox_pool import sandbox_pool


def build_shared_objects() -> None:
    # Imports all views and their dependencies.
    get_resolver().url_patterns  # noqa: B018
    engines.all()
    build_limiters()
    sandbox_pool()
