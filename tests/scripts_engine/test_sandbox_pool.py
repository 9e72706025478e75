"""The pool of a process: its settings, and its database connection while a run waits."""

from typing import Any

import pytest
from django.db import connection, transaction

from scripts_engine.sandbox import Job
from scripts_engine.sandbox_pool import _Observer, sandbox_pool


def test_the_pool_keeps_as_many_processes_as_configured(settings: Any) -> None:
    settings.SANDBOX_SLOTS, settings.SANDBOX_PROCESSES = 1, 2
    pool = sandbox_pool.__wrapped__()
    try:
        for tenant in ("acme", "globex", "initech"):
            pool.run(tenant, Job(source=b"return 1", chunk_name="script", params={}))
        stats = pool.stats()
    finally:
        pool.close()

    assert (stats.slots, stats.children, stats.evicted) == (1, 2, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite pools no connections")
def test_a_run_that_waits_for_a_slot_lends_its_connection() -> None:
    connection.ensure_connection()
    _Observer().about_to_wait()

    assert connection.connection is None


@pytest.mark.django_db(transaction=True)
def test_a_run_within_a_transaction_keeps_its_connection() -> None:
    with transaction.atomic():
        before = connection.connection
        _Observer().about_to_wait()

        assert connection.connection is before
