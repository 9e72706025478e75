"""Compiled statements do the same as Django's own."""

import json
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import CharField, UUIDField
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiKey, AuthEvent, Organisation
from core.database.compiled_query import (
    CompiledInsert,
    CompiledQuery,
    CompiledUpdate,
    JsonText,
    Parameter,
)
from jobs.models import QueueEntry
from scripts_engine.models import Run, RunStatus
from tests import factories
from tests.concurrency import at_once

ID = Parameter("id", UUIDField())


def organisation_row(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": uuid.uuid4(),
        "name": name,
        "is_active": True,
        "sessions_valid_after": None,
        "runs_kept_days": None,
        "runs_kept": None,
        "run_bytes_quota": None,
        "failure_mails": False,
        "revision": 1,
        "revised_at": timezone.now(),
        "revised_by": "",
        "created_at": timezone.now(),
    } | more


def test_a_row_has_the_values_of_the_query_set(acme: Organisation) -> None:
    columns = ("id", "name", "is_active", "sessions_valid_after", "created_at")
    compiled = CompiledQuery(Organisation.objects.filter(pk=ID).values_list(*columns))

    assert compiled.first(id=acme.pk) == Organisation.objects.values_list(*columns).get()


def test_instances_have_their_related_objects(
    acme: Organisation, django_assert_num_queries: Any
) -> None:
    made = factories.make_api_key(acme).api_key
    keys = ApiKey.objects.filter(organisation=ID).select_related("organisation", "created_by")
    compiled = CompiledQuery(keys)

    with django_assert_num_queries(1):
        (found,) = compiled.all(id=acme.pk)
        organisation, creator = found.organisation, found.created_by

    assert (found, organisation, creator) == (made, acme, None)
    assert vars(organisation).keys() == vars(Organisation.objects.get()).keys()
    assert compiled.all(id=uuid.uuid4()) == []


def test_every_execution_uses_its_own_values(acme: Organisation, globex: Organisation) -> None:
    names = Organisation.objects.filter(pk=ID, name__in=[Parameter("name", CharField()), "Globex"])
    compiled = CompiledQuery(names.values_list("name"))

    assert compiled.first(id=acme.pk, name="Acme") == ("Acme",)
    assert compiled.first(id=acme.pk, name="acme") is None
    assert compiled.first(id=globex.pk, name="Acme") == ("Globex",)


def test_a_value_is_never_part_of_the_statement(acme: Organisation) -> None:
    compiled = CompiledQuery(
        Organisation.objects.filter(name=Parameter("name", CharField())).values_list("name")
    )

    assert compiled.first(name="x' OR '1'='1") is None
    assert compiled.first(name="%s") is None


def test_a_missing_parameter_is_an_error(db: None) -> None:
    compiled = CompiledQuery(Organisation.objects.filter(pk=ID).values_list("name"))

    with pytest.raises(KeyError, match="id"):
        compiled.first(name="Acme")


def test_rows_are_written_together(db: None) -> None:
    rows = [organisation_row(f"Shop {number}") for number in range(3)]

    with CaptureQueriesContext(connection) as statements:
        CompiledInsert(Organisation).execute(rows)

    assert len(statements) == 1
    assert {row["id"]: row["name"] for row in rows} == dict(
        Organisation.objects.values_list("pk", "name")
    )


@pytest.mark.django_db(transaction=True)
def test_one_refused_row_keeps_out_the_others(acme: Organisation) -> None:
    rows = [organisation_row("Shop"), organisation_row("Twin", id=acme.pk)]

    with pytest.raises(IntegrityError):
        CompiledInsert(Organisation).execute(rows)

    assert [each.name for each in Organisation.objects.all()] == ["Acme"]


def queued_rows(acme: Organisation) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row of a run, and that of its entry in the queue."""
    of_acme = factories.make_hook(factories.make_script(acme)).hook
    run = factories.past_run(of_acme, timezone.now(), RunStatus.QUEUED.value)
    run.pk = uuid.uuid4()
    entry = QueueEntry(
        run=run,
        organisation=acme,
        script=of_acme.script,
        payload_of=run.pk,
        due_at=run.started_at,
        max_attempts=1,
    )
    of_run = {field.attname: getattr(run, field.attname) for field in Run._meta.local_fields}
    fields = QueueEntry._meta.local_fields
    return of_run, {field.attname: getattr(entry, field.attname) for field in fields}


def test_rows_of_two_tables_are_written_together(acme: Organisation) -> None:
    rows = [queued_rows(acme) for _ in range(2)]

    with CaptureQueriesContext(connection) as statements:
        CompiledInsert(Run).execute_with(
            [run for run, _ in rows], CompiledInsert(QueueEntry), [entry for _, entry in rows]
        )

    assert {run["id"] for run, _ in rows} == set(QueueEntry.objects.values_list("run", flat=True))
    assert Run.objects.count() == 2
    if connection.vendor == "postgresql":
        assert len(statements) == 1


@pytest.mark.django_db(transaction=True)
def test_a_refused_row_of_the_second_table_keeps_out_those_of_the_first(
    acme: Organisation,
) -> None:
    run, entry = queued_rows(acme)

    with pytest.raises(IntegrityError):
        CompiledInsert(Run).execute_with(
            [run], CompiledInsert(QueueEntry), [entry | {"script_id": None}]
        )

    assert not Run.objects.exists()
    assert not QueueEntry.objects.exists()


def test_given_columns_of_some_rows_are_updated(acme: Organisation) -> None:
    organisations = [acme, *(factories.make_organisation(name) for name in ("Globex", "Initech"))]
    ended_at = timezone.now()

    CompiledUpdate(Organisation, ("sessions_valid_after", "is_active")).execute(
        {
            organisations[0].pk: {"sessions_valid_after": ended_at, "is_active": False},
            organisations[1].pk: {"sessions_valid_after": None, "is_active": False},
        }
    )

    assert set(Organisation.objects.values_list("name", "sessions_valid_after", "is_active")) == {
        ("Acme", ended_at, False),
        ("Globex", None, False),
        ("Initech", None, True),
    }


@pytest.mark.parametrize("model", [Run, AuthEvent, Organisation])
def test_a_copy_of_a_row_is_the_same_row(acme: Organisation, model: Any) -> None:
    """Values of every kind of column are converted as Django converts them."""
    factories.run_lua(
        acme, 'print("ä\\0")\nhttp.get("http://127.0.0.1:1")\nreturn {a = 1}', body=b"\x00\xff"
    )
    factories.open_session(factories.api_key_login(factories.make_api_key(acme)))
    copied = model.objects.first()
    row = {field.attname: getattr(copied, field.attname) for field in model._meta.local_fields}
    new_id = uuid.uuid4()

    CompiledInsert(model).execute([row | {"id": new_id}])

    # Each has the number of its own transaction.
    numbers = {"ended_in": None, "written_in": None}
    stored = model.objects.filter(pk=new_id).values().get() | numbers
    original = model.objects.filter(pk=copied.pk).values().get() | numbers
    assert stored == original | {"id": new_id}


@pytest.mark.parametrize("count", [1, 2])
def test_encoded_json_is_stored_as_the_value_that_it_encodes(
    acme: Organisation, count: int
) -> None:
    copied = factories.run_lua(acme, "return 1")
    row = {field.attname: getattr(copied, field.attname) for field in Run._meta.local_fields}
    logs = [{"text": "ä 'quoted' \\ %s"}, "[]"]
    encoded = row | {"logs": JsonText(json.dumps(logs)), "host_calls": "[]"}

    CompiledInsert(Run).execute([encoded | {"id": uuid.uuid4()} for _ in range(count)])

    stored = list(Run.objects.exclude(pk=copied.pk).values_list("logs", "host_calls"))
    assert stored == [(logs, "[]")] * count


@pytest.mark.parametrize("count", [1, 2])
def test_no_json_is_null_whatever_is_written_beside(acme: Organisation, count: int) -> None:
    """`logs` may not be NULL, so that both ways are refused."""
    copied = factories.run_lua(acme, "return 1")
    row = {field.attname: getattr(copied, field.attname) for field in Run._meta.local_fields}
    rows = [row | {"id": uuid.uuid4(), "logs": None}, row | {"id": uuid.uuid4(), "logs": []}]

    with pytest.raises(IntegrityError):
        CompiledInsert(Run).execute(rows[:count])


def test_rows_with_different_columns_of_null_are_written_together(acme: Organisation) -> None:
    copied = factories.run_lua(acme, "return 1")
    row = {field.attname: getattr(copied, field.attname) for field in Run._meta.local_fields}
    changes: list[dict[str, Any]] = [
        {"event_id": "a", "error_line": 7, "client_address": None},
        {"event_id": None, "error_line": None, "client_address": "2001:db8::1"},
        {"event_id": None, "error_line": 8, "client_address": "192.0.2.1"},
    ]

    CompiledInsert(Run).execute([row | {"id": uuid.uuid4()} | change for change in changes])

    stored = Run.objects.exclude(pk=copied.pk).values(*changes[0], "status", "script_version_id")
    unchanged = {"status": copied.status, "script_version_id": copied.script_version_id}
    assert sorted(stored, key=str) == sorted([each | unchanged for each in changes], key=str)


def test_a_required_column_stays_required(acme: Organisation) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        CompiledInsert(Organisation).execute([organisation_row("Shop", is_active=None)])


def test_a_required_column_with_a_default_stays_required(acme: Organisation) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        CompiledInsert(Organisation).execute([organisation_row("Shop", failure_mails=None)])


def test_a_time_is_found_by_equality_and_by_order(acme: Organisation) -> None:
    """SQLite compares times as text, so one in another format would not be found."""
    moment = timezone.now()
    CompiledInsert(Organisation).execute([organisation_row("Shop", created_at=moment)])

    found = Organisation.objects.filter(created_at=moment)
    assert found.get().name == "Shop"
    assert found.filter(created_at__gt=acme.created_at).exists()
    before = Parameter("before", Organisation._meta.get_field("created_at"))
    earlier = CompiledQuery(Organisation.objects.filter(created_at__lt=before).values_list("name"))
    assert earlier.all(before=moment) == [("Acme",)]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans in the client")
def test_the_server_plans_a_statement_once(acme: Organisation) -> None:
    compiled = CompiledQuery(Organisation.objects.filter(pk=ID).values_list("name"))

    for _ in range(3):
        compiled.first(id=acme.pk)

    with connection.cursor() as cursor:
        cursor.execute("SELECT generic_plans + custom_plans FROM pg_prepared_statements")
        assert [row for row in cursor.fetchall() if row[0]] == [(3,)]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans in the client")
@pytest.mark.django_db(transaction=True)
def test_a_changed_column_is_planned_again(acme: Organisation) -> None:
    compiled = CompiledQuery(Organisation.objects.filter(pk=ID).values_list("name"))
    assert compiled.first(id=acme.pk) == ("Acme",)

    def change(length: int) -> None:
        statement = f"ALTER TABLE accounts_organisation ALTER COLUMN name TYPE varchar({length})"
        with connection.cursor() as cursor:
            cursor.execute(statement)

    # By another connection, as a migration would.
    at_once(1, lambda _: change(300))
    try:
        assert compiled.first(id=acme.pk) == ("Acme",)
    finally:
        at_once(1, lambda _: change(200))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps no cursors")
def test_a_kept_cursor_keeps_neither_values_nor_rows(acme: Organisation) -> None:
    columns = Organisation.objects.filter(pk=ID).values_list("name")
    CompiledQuery(columns).first(id=acme.pk)
    CompiledInsert(Organisation).execute([organisation_row("Globex")])

    [select, insert] = list(connection.connection._statement_cursors.values())[-2:]
    assert select.pgresult is None
    assert (select._query, insert._query) == (None, None)
