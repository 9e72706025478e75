"""This process's sandboxes: one pool, made when it is first needed."""

import atexit

from django.conf import settings

from config.http.built_once import built_once
from scripts_engine.sandbox.pool import SandboxPool
from scripts_engine.sandbox_metrics import SandboxMetrics


@built_once
def sandbox_pool() -> SandboxPool:
    pool = SandboxPool(
        size=settings.SANDBOX_SLOTS,
        processes=settings.SANDBOX_PROCESSES,
        observer=SandboxMetrics(),
    )
    atexit.register(pool.close)
    return pool
