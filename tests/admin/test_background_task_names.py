"""Every task has a readable name in the admin."""

import inspect

import pytest
from django.core.checks import run_checks
from django_tasks.base import Task

from accounts import tasks
from config.admin.background_tasks import NAMES, name_of

PATHS = [
    task.module_path for _, task in inspect.getmembers(tasks, lambda one: isinstance(one, Task))
]


def test_the_tasks_are_found() -> None:
    assert len(PATHS) >= 4


@pytest.mark.parametrize("path", PATHS)
def test_a_task_has_a_name(path: str) -> None:
    assert path in NAMES


def test_a_removed_task_is_named_by_its_function() -> None:
    assert name_of("accounts.tasks.send_old_thing") == "Send old thing"


def test_a_lease_within_the_time_limit_is_refused(settings: object) -> None:
    settings.TASK_LEASE_SECONDS = settings.TASK_TIMEOUT_SECONDS = 30  # type: ignore[attr-defined]

    assert "moonhook.E003" in {message.id for message in run_checks()}
