"""What is forgotten, and what is kept."""

import json
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from accounts.flows.api_keys import IssuedApiKey
from accounts.flows.send_pin import request_pin
from accounts.messages.channels import SendVia
from accounts.models import (
    AuthEvent,
    PinChallenge,
    PinCode,
    PinFailures,
    PinTries,
    RateCounter,
    User,
)
from accounts.upkeep import forget_old_failures
from core import upkeep
from core.database import batches
from core.database.ids import first_id_at
from core.http.origin import NOWHERE
from core.upkeep import all_duties
from jobs.models import Message
from scripts_engine.models import StoredValue
from sessions_api.models import Session
from tests.factories import api_key_login, make_pin, open_session

NOW = timezone.now


def in_us(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000)


def test_only_expired_rows_are_deleted(
    acme_key: IssuedApiKey, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)
    organisation = acme_key.api_key.organisation
    kept_session = Session.objects.find_live(open_session(api_key_login(acme_key)))
    expired = [Session.objects.find_live(open_session(api_key_login(acme_key))) for _ in range(3)]
    Session.objects.filter(pk__in=[s.pk for s in expired if s]).update(expires_at=NOW())
    StoredValue.objects.create(organisation=organisation, key=b"a", value="1", expires_at=NOW())
    StoredValue.objects.create(organisation=organisation, key=b"b", value="1")
    RateCounter.objects.create(key="over", hits=1, ends_at=in_us(NOW()))
    RateCounter.objects.create(key="open", hits=1, ends_at=in_us(NOW() + timedelta(hours=1)))
    make_pin(alice)
    assert PinTries.objects.claim(PinChallenge.objects.all(), uuid4())
    PinChallenge.objects.update(expires_at=NOW() - timedelta(days=1))
    long_ago = first_id_at(NOW() - settings.AUTH_EVENTS_KEPT - timedelta(minutes=1))
    AuthEvent.objects.filter(kind="api-key.issued").update(id=long_ago)
    with pytest.raises(SystemExit) as ended:
        call_command("upkeep")

    assert ended.value.code == 0
    assert kept_session is not None
    assert list(Session.objects.values_list("pk", flat=True)) == [kept_session.pk]
    assert [bytes(value.key) for value in StoredValue.objects.all()] == [b"b"]
    assert list(RateCounter.objects.values_list("key", flat=True)) == ["open"]
    assert [model.objects.count() for model in (PinChallenge, PinCode, PinTries)] == [0] * 3
    assert not AuthEvent.objects.filter(kind="api-key.issued").exists()
    assert AuthEvent.objects.filter(kind="session.opened").count() == 4


def test_finished_tasks_are_forgotten_after_a_day(alice: User) -> None:
    request_pin(alice.email, SendVia.EMAIL, NOWHERE)
    Message.objects.update(status="SUCCESSFUL", finished_at=NOW() - timedelta(days=2))

    assert upkeep.do_upkeep().failed == []
    assert Message.objects.count() == 0


def test_counts_of_failed_pins_are_forgotten_unless_they_stop_somebody(alice: User) -> None:
    long_ago = NOW() - timedelta(days=2)
    counts = {"nobody@example.com": 3, alice.email: 100, "bob@example.com": 0}
    for email, failures in counts.items():
        PinFailures.objects.create(
            bucket=email, email=email, consecutive_failures=failures, day_started_at=long_ago
        )
    PinFailures.objects.create(bucket="new@example.com", email="new@example.com")
    forget_old_failures()

    kept = set(PinFailures.objects.values_list("bucket", flat=True))
    assert kept == {alice.email, "new@example.com"}


def test_a_failing_duty_does_not_stop_the_others(
    db: None, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    def fail() -> int:
        raise RuntimeError("broken")

    def succeed() -> int:
        done.append("x")
        return 1

    assert upkeep.do_upkeep((fail, succeed)) == upkeep.Upkeep({"succeed": 1}, ["fail"])
    assert done == ["x"]
    assert "Upkeep: fail failed" in caplog.text


def test_a_round_is_told_as_json(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    RateCounter.objects.create(key="over", hits=1, ends_at=in_us(NOW()))
    with pytest.raises(SystemExit) as ended:
        call_command("upkeep", "--json")

    told = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    assert told["done"]["forget_ended_counters"] == 1
    assert set(told["done"]) == {duty.__name__ for duty in all_duties()}
    assert told["failed"] == []


def test_a_round_with_a_failing_duty_ends_with_a_failure(
    db: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise RuntimeError

    monkeypatch.setattr(upkeep, "all_duties", lambda: (broken,))
    with pytest.raises(SystemExit) as ended:
        call_command("upkeep")

    assert ended.value.code == 1
    assert "broken: failed, see the log" in capsys.readouterr().out
