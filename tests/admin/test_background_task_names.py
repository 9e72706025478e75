"""Every task has a readable name in the admin."""

import importlib
import inspect
import pkgutil

from django.core.checks import run_checks
from django_tasks.base import Task

import accounts.flows
import scripts_engine.flows
from jobs.models.message import NAMES, name_of

PATHS = sorted(
    {
        task.module_path
        for flows in (accounts.flows, scripts_engine.flows)
        for module in pkgutil.iter_modules(flows.__path__, f"{flows.__name__}.")
        for _, task in inspect.getmembers(
            importlib.import_module(module.name), lambda one: isinstance(one, Task)
        )
    }
)


def test_the_tasks_are_those_with_names() -> None:
    assert len(PATHS) >= 8
    assert sorted(NAMES) == PATHS


def test_a_removed_task_is_named_by_its_function() -> None:
    assert name_of("accounts.flows.notices.send_old_thing") == "Send old thing"


def test_a_lease_within_the_time_limit_is_refused(settings: object) -> None:
    settings.TASK_LEASE_SECONDS = settings.TASK_TIMEOUT_SECONDS = 30  # type: ignore[attr-defined]

    assert "moonhook.E003" in {message.id for message in run_checks()}
