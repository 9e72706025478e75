"""The assertion that nothing is written fails for every way to write."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from accounts.models import AuthEvent, Organisation, RateCounter
from core.database.compiled_query import CompiledUpdate
from scripts_engine.models import Script
from tests.factories import make_script
from tests.written import nothing_written

RENAME = CompiledUpdate(Organisation, ["name"])


def rolled_back(acme: Organisation) -> None:
    with transaction.atomic():
        Organisation.objects.update(name="Other")
        transaction.set_rollback(True)


WRITES: dict[str, Callable[[Organisation], object]] = {
    "insert": make_script,
    "update": lambda acme: Organisation.objects.update(name="Other"),
    "same-value": lambda acme: Organisation.objects.update(name=acme.name),
    "delete": lambda acme: AuthEvent.objects.all().delete(),
    "many": lambda acme: Script.objects.bulk_create([Script(organisation=acme, name="new")]),
    "compiled": lambda acme: RENAME.execute({acme.pk: {"name": "Other"}}),
    "rolled-back": rolled_back,
    "table": lambda acme: connection.cursor().execute("CREATE TABLE other (id integer)"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_is_seen(acme: Organisation, write: Callable[[Organisation], object]) -> None:
    make_script(acme, name="first")

    with pytest.raises(AssertionError, match="written: "), nothing_written():
        write(acme)


def test_reads_locks_and_counters_are_no_writes(acme: Organisation) -> None:
    with nothing_written():
        Organisation.objects.select_for_update().get()
        Organisation.objects.filter(name="nobody").update(name="Other")
        RateCounter.objects.create(key="tries", hits=1, ends_at=0)
