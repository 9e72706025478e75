"""This process's sandboxes: one pool, made when it is first needed."""

import atexit
from functools import cache

from django.conf import settings

from scripts_engine.sandbox.pool import SandboxPool
from scripts_engine.sandbox_metrics import SandboxMetrics


@cache
def sandbox_pool() -> SandboxPool:
    pool = SandboxPool(
        size=settings.SANDBOX_SLOTS,
        processes=settings.SANDBOX_PROCESSES,
        observer=SandboxMetrics(),
    )
    atexit.register(pool.close)
    return pool
