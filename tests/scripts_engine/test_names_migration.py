"""Migration 0002 gives scripts of before the rule names of their own, and publishes versions."""

import logging
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

BEFORE = [("scripts_engine", "0001_first_release")]
AFTER = [("scripts_engine", "0002_names_and_releases")]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def migrate(targets: list[tuple[str, str]]) -> Any:
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def earlier() -> Iterator[Any]:
    """The models as they were; afterwards everything is migrated again."""
    yield migrate(BEFORE)
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_doubles_are_numbered_oldest_first_and_logged(
    earlier: Any, caplog: pytest.LogCaptureFixture
) -> None:
    organisations = earlier.get_model("accounts", "Organisation").objects
    scripts = earlier.get_model("scripts_engine", "Script").objects
    acme, globex = (organisations.create(id=uuid4(), name=name) for name in ("Acme", "Globex"))
    names = ["sum", "SUM", "sum 2", " sum ", "a\nb", "", "x" * 200, "x" * 150]
    rows = [scripts.create(id=uuid4(), organisation=acme, name=name) for name in names]
    deleted = scripts.create(id=uuid4(), organisation=acme, name="sum", deleted_at=timezone.now())
    elsewhere = scripts.create(id=uuid4(), organisation=globex, name="sum")

    with caplog.at_level(logging.WARNING, logger="core.names"):
        later = migrate(AFTER).get_model("scripts_engine", "Script").objects

    named = later.in_bulk([row.pk for row in rows])
    assert [named[row.pk].name for row in rows] == [
        "sum",
        "SUM 2",
        "sum 2 2",
        "sum 3",
        "a b",
        "Script",
        "x" * 100,
        "x" * 98 + " 2",
    ]
    assert [named[row.pk].name_key for row in rows[:2]] == ["sum", "sum 2"]
    assert later.get(pk=deleted.pk).name == later.get(pk=elsewhere.pk).name == "sum"
    assert f"{rows[1].pk}: the name 'SUM' is now 'SUM 2'" in caplog.text
    assert str(rows[0].pk) not in caplog.text


def test_versions_of_before_count_as_published(earlier: Any) -> None:
    organisation = earlier.get_model("accounts", "Organisation").objects.create(
        id=uuid4(), name="Acme"
    )
    script = earlier.get_model("scripts_engine", "Script").objects.create(
        id=uuid4(), organisation=organisation, name="sum"
    )
    version = earlier.get_model("scripts_engine", "ScriptVersion").objects.create(
        id=uuid4(), script=script, number=1, source="return 'ü'"
    )

    later = migrate(AFTER).get_model("scripts_engine", "ScriptVersion").objects.get(pk=version.pk)

    assert (later.published_at, later.draft_of) == (version.created_at, "")
    assert later.source_digest == sha256("return 'ü'".encode()).hexdigest()
