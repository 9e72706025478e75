import logging
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.db import connection
from django.utils import timezone

from accounts.flows.send_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import PinCode, User
from core.database.unavailable import DatabaseUnavailable
from core.http.origin import NOWHERE
from jobs.messages import runner
from jobs.models import Message
from tests.eventually import eventually
from tests.factories import work
from tests.jobs.messages.running import running_messages
from tests.unavailable import execute_read_only


@pytest.mark.django_db(transaction=True)
def test_messages_are_sent_when_the_database_is_back(
    alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)
    monkeypatch.setattr(runner, "OUTAGE_SECONDS", 0)
    looks = patch_looks(monkeypatch, [DatabaseUnavailable("gone")] * 5)
    with caplog.at_level(logging.ERROR), running_messages():
        eventually(lambda: Message.objects.filter(status="SUCCESSFUL").exists())

    assert looks == []
    assert caplog.messages == ["Messages wait for the database: gone"]
    assert caplog.records[0].exc_info is None


@pytest.mark.django_db(transaction=True)
def test_messages_are_sent_after_a_look_that_failed(
    alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)
    monkeypatch.setattr(runner, "OUTAGE_SECONDS", 0)
    patch_looks(monkeypatch, [ValueError("a defect")])
    with running_messages():
        eventually(lambda: Message.objects.filter(status="SUCCESSFUL").exists())

    assert "ValueError: a defect" in caplog.text


def patch_looks(monkeypatch: pytest.MonkeyPatch, errors: list[Exception]) -> list[Exception]:
    """Lets the first looks for due messages raise these errors."""
    look = runner.queues_with_due_messages

    def failing() -> list[str]:
        if errors:
            raise errors.pop()
        return look()

    monkeypatch.setattr(runner, "queues_with_due_messages", failing)
    return errors


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

    delivery = Message.objects.get()
    assert delivery.status == "READY"
    assert "DatabaseUnavailable" in delivery.traceback
    assert mailoutbox == []

    Message.objects.update(due_at=timezone.now())
    work()

    delivery.refresh_from_db()
    assert delivery.status == "SUCCESSFUL"
    assert len(mailoutbox) == 1
