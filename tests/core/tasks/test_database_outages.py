import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.utils import timezone
from django_tasks_db.models import DBTaskResult

from accounts.flows.request_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import PinCode, User
from accounts.tasks import deliver_pin_over
from core.database.unavailable import DatabaseUnavailable
from core.http.origin import NOWHERE
from core.tasks import worker
from core.tasks.worker import run_through_outages
from tests.factories import work
from tests.unavailable import execute_read_only


def failing(times: int, done: list[str]) -> Callable[[], None]:
    left = [DatabaseUnavailable("gone")] * times

    def work() -> None:
        if left:
            raise left.pop()
        done.append("done")

    return work


def test_work_resumes_when_the_database_is_back(
    db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "DATABASE_RETRY_SECONDS", 0)
    done: list[str] = []
    with caplog.at_level(logging.ERROR):
        run_through_outages(failing(5, done))

    assert done == ["done"]
    assert caplog.messages == ["Waiting for the database: gone"]
    assert caplog.records[0].exc_info is None


def test_other_errors_are_raised() -> None:
    def work() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        run_through_outages(work)


def refuse_codes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """An execute wrapper: only what is stored of PIN codes meets a read-only database."""
    meets = PinCode._meta.db_table in sql and not sql.startswith("SELECT")
    return (execute_read_only if meets else _as_ever)(execute, sql, params, many, context)


def _as_ever(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    return execute(sql, params, many, context)


# On PostgreSQL ``work`` claims in the test's own transaction, which the refusal would end.
@pytest.mark.skipif(connection.vendor == "postgresql", reason="refused in a transaction")
@pytest.mark.django_db(transaction=True)
def test_task_that_meets_an_outage_is_tried_again(
    alice: User, mailoutbox: list[EmailMessage]
) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)
    with connection.execute_wrapper(refuse_codes):
        work()

    delivery = DBTaskResult.objects.get(task_path=deliver_pin_over.module_path)
    assert delivery.status == "READY"
    assert "DatabaseUnavailable" in delivery.exception_class_path
    assert mailoutbox == []

    DBTaskResult.objects.update(run_after=timezone.now())
    work()

    delivery.refresh_from_db()
    assert delivery.status == "SUCCESSFUL"
    assert len(mailoutbox) == 1
