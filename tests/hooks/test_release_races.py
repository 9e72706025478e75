"""Changes at the same time: of one name one is taken, of one revision one is saved."""

from collections import Counter
from collections.abc import Callable

import pytest
from django.core.exceptions import ValidationError

from core.errors import ConflictError
from hooks.flows.hooks import issue_hook, update_hook
from hooks.models import Hook
from jobs.models import Schedule
from jobs.schedules.schedules import create_schedule, update_schedule
from scripts_engine.models import Release
from tests.concurrency import at_once
from tests.factories import make_hook, make_organisation, make_script

pytestmark = pytest.mark.django_db(transaction=True)
TIMES = 4


def outcomes(act: Callable[[int], object]) -> Counter[str]:
    """How many succeeded, and the fields or kinds of refusals of the others."""

    def outcome(number: int) -> str:
        try:
            act(number)
        except ValidationError as refused:
            return ", ".join(refused.error_dict)
        except ConflictError:
            return "conflict"
        return "done"

    return Counter(at_once(TIMES, outcome))


def test_of_hooks_with_one_name_one_is_created() -> None:
    script = make_script(make_organisation())

    found = outcomes(lambda _: issue_hook(script, name="shop"))

    assert found == {"done": 1, "name": TIMES - 1}
    assert Hook.objects.get().name == "shop"
    assert Release.objects.filter(changes__kind="Hook").count() == 1


def test_hooks_without_a_name_get_different_ones() -> None:
    script = make_script(make_organisation())

    assert outcomes(lambda _: issue_hook(script)) == {"done": TIMES}
    assert sorted(Hook.objects.values_list("name", flat=True)) == [
        "Hook",
        "Hook 2",
        "Hook 3",
        "Hook 4",
    ]
    numbers = list(Release.objects.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def test_of_schedules_with_one_name_one_is_created() -> None:
    script = make_script(make_organisation())

    found = outcomes(lambda _: create_schedule(script, name="nightly", cron="0 0 * * *"))

    assert found == {"done": 1, "name": TIMES - 1}
    assert Schedule.objects.get().name == "nightly"


def test_of_changes_that_expect_one_revision_one_is_saved() -> None:
    script = make_script(make_organisation())
    hook = make_hook(script).hook
    schedule = create_schedule(script, cron="0 0 * * *")

    def change_hook(number: int) -> None:
        update_hook(hook, burst=number + 1, expected_revision=1)

    def change_schedule(number: int) -> None:
        update_schedule(schedule, cron=f"{number + 1} * * * *", expected_revision=1)

    assert outcomes(change_hook) == {"done": 1, "conflict": TIMES - 1}
    assert outcomes(change_schedule) == {"done": 1, "conflict": TIMES - 1}
    hook.refresh_from_db()
    schedule.refresh_from_db()
    assert (hook.revision, schedule.revision) == (2, 2)
