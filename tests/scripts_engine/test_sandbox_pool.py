"""The settings of the pool that a process runs its scripts in."""

from typing import Any

from scripts_engine.sandbox.job import Job
from scripts_engine.sandbox_pool import sandbox_pool


def test_as_many_processes_are_kept_as_the_settings_say(settings: Any) -> None:
    settings.SANDBOX_SLOTS, settings.SANDBOX_PROCESSES = 1, 2
    pool = sandbox_pool.__wrapped__()
    try:
        for tenant in ("acme", "globex", "initech"):
            pool.run(tenant, Job(source=b"return 1", chunk_name="script", params={}))
        stats = pool.stats()
    finally:
        pool.close()

    assert (stats.slots, stats.children, stats.evicted) == (1, 2, 1)
