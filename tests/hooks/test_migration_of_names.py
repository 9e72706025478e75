"""Names of before the rule: doubles of hooks and schedules get a number, told in the log."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from tests.factories import make_organisation, make_script

BEFORE = [("hooks", "0001_first_release"), ("jobs", "0001_first_release")]
AFTER = [("hooks", "0002_names_and_pins"), ("jobs", "0002_names")]


@pytest.fixture
def apps_before(transactional_db: None) -> Iterator[Any]:
    """The models as they were. Afterwards, the schema is the present one again."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    try:
        yield executor.loader.project_state(BEFORE).apps
    finally:
        migrate()


def migrate() -> Any:
    """To the present schema; returns its models."""
    executor = MigrationExecutor(connection)
    executor.migrate(AFTER)
    return executor.loader.project_state(AFTER).apps


def test_doubles_get_a_number_and_the_log_tells(
    apps_before: Any, caplog: pytest.LogCaptureFixture
) -> None:
    acme, globex = make_organisation("Acme"), make_organisation("Globex")
    script, other, theirs = make_script(acme), make_script(acme), make_script(globex)
    deleted = make_script(acme)
    type(deleted).objects.filter(pk=deleted.pk).update(deleted_at=timezone.now())
    hook, schedule = (
        apps_before.get_model(*each) for each in (("hooks", "Hook"), ("jobs", "Schedule"))
    )
    of_hooks = [(script, "shop"), (script, "Shop"), (script, ""), (script, "a\nb"), (other, "shop")]
    for number, (place, name) in enumerate(of_hooks):
        hook.objects.create(script_id=place.pk, name=name, digest=f"{number}", pepper_version=1)
    gone = hook.objects.create(
        script_id=script.pk, name="shop", digest="gone", pepper_version=1, deleted_at=timezone.now()
    )
    for place, name in [
        (script, "x" * 200),
        (other, "x" * 200),
        (theirs, "nightly"),
        (deleted, "nightly"),
    ]:
        schedule.objects.create(
            organisation_id=place.organisation_id, script_id=place.pk, name=name, cron="* * * * *"
        )

    apps_after = migrate()

    hooks = apps_after.get_model("hooks", "Hook").objects.order_by("created_at", "id")
    assert list(hooks.exclude(pk=gone.pk).values_list("name", "name_key", "revision")) == [
        ("shop", "shop", 1),
        ("Shop 2", "shop 2", 1),
        ("Hook", "hook", 1),
        ("a b", "a b", 1),
        ("shop", "shop", 1),
    ]
    assert hooks.get(pk=gone.pk).name == "shop"
    schedules = apps_after.get_model("jobs", "Schedule").objects.order_by("created_at", "id")
    assert list(schedules.values_list("name", flat=True)) == ["x" * 100, "x" * 98 + " 2", "nightly"]
    assert "the name 'Shop' is now 'Shop 2'" in caplog.text
    assert caplog.text.count("is now") == 5
