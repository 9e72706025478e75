"""Scripts and hooks from before they were counted are counted by the upgrade."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.models import RunStorage
from scripts_engine.flows.definition_quota import ROW_BYTES
from scripts_engine.models import Run
from tests.factories import make_hook, make_organisation, make_script, run_lua

BEFORE = [("scripts_engine", "0017_queue_waiting_by_script"), ("accounts", "0017_failure_mails")]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_versions_and_hooks_are_counted_and_runs_keep_their_versions() -> None:
    organisation = make_organisation("Acme")
    script = make_script(organisation)
    make_hook(script)
    run_lua(organisation, "return 1")
    runs = list(Run.objects.values())
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    executor.migrate(BEFORE)
    MigrationExecutor(connection).migrate(latest)

    counted = RunStorage.objects.get().definition_bytes
    sources = sum(len(each.source) for each in organisation.scripts.all())
    assert organisation.scripts.count() == 2
    assert counted == 3 * ROW_BYTES + sources
    assert list(Run.objects.values()) == runs
