"""Limits of a hook's runs, which the queue reads without knowing hooks."""

import pytest

from accounts.models import Organisation
from hooks.flows.hooks import issue_hook, update_hook
from hooks.flows.retention import forget_run_limits
from hooks.models import Hook
from jobs.models import RunLimits
from jobs.queue.claim import Turns, claim_due_runs
from tests.factories import make_script
from tests.working_queue import queue

pytestmark = pytest.mark.django_db


def test_limit_set_on_a_hook_holds_for_its_queued_runs(hook: Hook) -> None:
    update_hook(hook, max_concurrent_runs=1)
    queue(hook)
    queue(hook)

    assert len(claim_due_runs(4, Turns()).claimed) == 1


def test_limits_of_a_new_hook_are_told_to_the_queue(acme: Organisation) -> None:
    issued = issue_hook(make_script(acme), max_concurrent_runs=3, max_attempts=2)

    limits = RunLimits.objects.get()
    assert limits.pk == issued.hook.pk
    assert (limits.max_concurrent_runs, limits.max_attempts) == (3, 2)


def test_hook_whose_limits_are_reset_has_none_in_the_queue(hook: Hook) -> None:
    update_hook(hook, max_concurrent_runs=1, max_attempts=2)
    update_hook(hook, max_concurrent_runs=None, max_attempts=None)

    assert not RunLimits.objects.exists()


def test_upkeep_forgets_limits_of_hooks_that_are_gone(hook: Hook) -> None:
    update_hook(hook, max_concurrent_runs=1)
    assert forget_run_limits() == 0

    hook.delete()

    assert forget_run_limits() == 1
    assert not RunLimits.objects.exists()
