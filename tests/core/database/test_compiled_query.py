"""Compiled statements do the same as Django's own."""

import json
import uuid
from typing import Any

import pytest
from django.db import IntegrityError, connection
from django.db.models import CharField, UUIDField
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import ApiKey, AuthEvent, Organisation
from core.database.compiled_query import CompiledInsert, CompiledQuery, JsonText, Parameter
from scripts_engine.models import Run
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

    stored = model.objects.filter(pk=new_id).values().get()
    assert stored == model.objects.filter(pk=copied.pk).values().get() | {"id": new_id}


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
