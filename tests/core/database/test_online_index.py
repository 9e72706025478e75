"""Adding an index after an interrupted attempt."""

import pytest
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from core.database.schema import AddIndexOnline

NAME = "run_tried_before"


def index_names() -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, "scripts_engine_run"))


@pytest.mark.django_db(transaction=True)
def test_the_index_of_an_earlier_attempt_is_replaced() -> None:
    operation = AddIndexOnline(
        model_name="run", index=models.Index(fields=["status", "-id"], name=NAME)
    )
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {NAME} ON scripts_engine_run (status)")
    before = ProjectState.from_apps(migrations.state.global_apps)
    after = before.clone()
    operation.state_forwards("scripts_engine", after)

    with connection.schema_editor(atomic=False) as editor:
        operation.database_forwards("scripts_engine", editor, before, after)
    with connection.cursor() as cursor:
        made = connection.introspection.get_constraints(cursor, "scripts_engine_run")[NAME]
    with connection.schema_editor(atomic=False) as editor:
        operation.database_backwards("scripts_engine", editor, after, before)

    assert made["columns"] == ["status", "id"]
    assert NAME not in index_names()
