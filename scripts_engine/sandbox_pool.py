"""This process's sandboxes: one pool, made when it is first needed."""

import atexit

from django.conf import settings

from core.built_once import built_once
from core.http.bulkhead import lend_connection
from scripts_engine.sandbox.parent.pool import SandboxPool
from scripts_engine.sandbox_metrics import SandboxMetrics


class _Observer(SandboxMetrics):
    def about_to_wait(self) -> None:
        lend_connection()


@built_once
def sandbox_pool() -> SandboxPool:
    pool = SandboxPool(
        size=settings.SANDBOX_SLOTS,
        processes=settings.SANDBOX_PROCESSES,
        queue_size=settings.SANDBOX_QUEUE,
        observer=_Observer(),
    )
    atexit.register(pool.close)
    return pool
