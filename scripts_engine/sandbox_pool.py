"""This process's sandboxes: one pool, made when it is first needed."""

import atexit

from django.conf import settings
from django.db import connection

from config.http.built_once import built_once
from scripts_engine.sandbox.pool import SandboxPool
from scripts_engine.sandbox_metrics import SandboxMetrics


class _Observer(SandboxMetrics):
    def about_to_wait(self) -> None:
        """Lends the connection to requests that do not wait, where connections are pooled."""
        if connection.vendor == "postgresql" and not connection.in_atomic_block:
            connection.close()


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
