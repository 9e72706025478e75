"""Hooks from before senders are the same after the upgrade."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from scripts_engine.flows.call_rules import rules_in_force
from scripts_engine.flows.find_callable_hook import find_callable_hook
from scripts_engine.models import Hook, Script
from tests.factories import make_hook, make_organisation, make_script

BEFORE = ("scripts_engine", "0007_run_drafts_and_responses")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_hook_without_rules_stays_as_it_is() -> None:
    hook, call_token = make_hook(make_script(make_organisation("Acme")))
    executor = MigrationExecutor(connection)
    latest = executor.loader.graph.leaf_nodes()
    executor.migrate([BEFORE])
    former = executor.loader.project_state([BEFORE]).apps.get_model("scripts_engine", "Hook")
    before = former.objects.values().get()
    MigrationExecutor(connection).migrate(latest)

    after = Hook.objects.values().get()
    assert {name: after[name] for name in before} == before
    found = find_callable_hook(hook.organisation.pk, hook.script_id, call_token)
    assert found is not None
    assert found.rules is None
    assert rules_in_force(Hook.objects.get()).sender is None
    assert Script.objects.get().max_concurrent_runs is None
