"""What a sender sees of a hook's limits: of its calls, of equal deliveries, of runs at once."""

import hashlib
import hmac
from typing import Any

import pytest

from accounts.models import Organisation, RateCounter
from hooks.flows import idempotency
from hooks.flows.hooks import IssuedHook
from hooks.flows.refused_calls import explain
from hooks.models import Hook, IdempotencyKey, RefusedCall
from jobs import concurrent_runs
from jobs.concurrent_runs import ConcurrencyLimits, take_lease
from jobs.models import RunLease
from scripts_engine.models import Run, Script
from tests.client import Client
from tests.factories import make_hook, make_script, set_rules, set_secret_of
from tests.hooks.calls import PROTECTION, path_of
from tests.hooks.github import refusals

SOURCE = 'return Reply{status = 201, headers = {["X-N"] = "n"}, body = store.increment("n")}'
SECRET = "a secret of the sender"
HMAC = {"header": "X-Signature", "template": "{body}", "idHeader": "X-Id"}

pytestmark = pytest.mark.django_db


@pytest.fixture
def issued(acme: Organisation) -> IssuedHook:
    return make_hook(make_script(acme, SOURCE))


def post(issued: IssuedHook, body: bytes = b"order 1", **headers: str) -> Any:
    return Client().post(path_of(issued), body, content_type="text/plain", headers=headers)


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def assert_refused(response: Any, status: int, code: str, retry_after: range) -> None:
    problem = response.json()
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert response["Content-Type"] == "application/problem+json"
    assert int(response["Retry-After"]) in retry_after
    assert response.headers.items() >= PROTECTION.items()
    assert "Moonhook-Run-Id" not in response.headers
    assert "runId" not in problem


def test_a_duplicate_gets_the_first_reply_and_names_its_run(issued: IssuedHook) -> None:
    set_rules(issued.hook, idempotency="body-hash")
    first = post(issued)
    again = post(issued)

    assert (first.status_code, first.content, first["X-N"]) == (201, b"1", "n")
    assert "Moonhook-Duplicate-Of" not in first.headers
    assert (again.status_code, again.content, again["X-N"]) == (201, b"1", "n")
    assert again["Moonhook-Duplicate-Of"] == again["Moonhook-Run-Id"] == first["Moonhook-Run-Id"]
    assert again.headers.items() >= PROTECTION.items()
    assert Run.objects.count() == 1
    assert post(issued, b"order 2").content == b"2"


def test_a_duplicate_of_a_run_in_progress_is_told_to_come_again(
    issued: IssuedHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.1)
    set_rules(issued.hook, idempotency="body-hash")
    content = ("POST", path_of(issued), "", b"order 1")
    digest = idempotency.delivery_digest(
        issued.hook.pk, "body-hash", event_id=None, content=content
    )
    assert digest is not None
    delivery = idempotency.claim_delivery(
        issued.hook.pk,
        digest,
        organisation_id=issued.hook.script.organisation_id,
        window_seconds=60,
        lease_seconds=30,
    )

    assert_refused(post(issued), 503, "duplicate-in-progress", range(5, 6))
    assert not Run.objects.exists()
    assert refusals() == [("Busy", "the same delivery was being processed")]
    assert [hint.code for hint in explain(RefusedCall.objects.get())] == ["duplicate-in-progress"]
    assert isinstance(delivery, idempotency.FirstDelivery)
    delivery.free()
    assert post(issued).status_code == 201


def test_calls_beyond_the_limit_are_refused_and_run_nothing(issued: IssuedHook) -> None:
    set_rules(issued.hook, calls_per_minute=1, burst=2)
    accepted = [post(issued).status_code for _ in range(2)]

    assert accepted == [201, 201]
    assert_refused(post(issued), 429, "rate-limited", range(58, 61))
    assert Run.objects.count() == 2
    set_rules(issued.hook, calls_per_minute=None)
    assert post(issued).status_code == 201


def test_the_default_burst_is_a_tenth_of_the_calls_a_minute(issued: IssuedHook) -> None:
    set_rules(issued.hook, calls_per_minute=25)
    statuses = [post(issued).status_code for _ in range(3)]

    assert statuses == [201, 201, 429]


def test_a_forged_call_spends_no_token(issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="hmac", hmac=HMAC, calls_per_minute=1, burst=1)
    set_secret_of(issued.hook, SECRET)
    forged = post(issued, **signed(b"order 1", "another secret"))

    assert (forged.status_code, forged.json()["code"]) == (401, "invalid-signature")
    assert not RateCounter.objects.filter(key__startswith="hook-calls/").exists()
    assert not Run.objects.exists()
    assert post(issued, **signed(b"order 1")).status_code == 201
    assert post(issued, **signed(b"order 1")).status_code == 429


def test_a_refused_call_claims_no_delivery(issued: IssuedHook) -> None:
    set_rules(issued.hook, idempotency="body-hash", calls_per_minute=1, burst=1)
    assert post(issued).status_code == 201

    assert_refused(post(issued, b"order 2"), 429, "rate-limited", range(58, 61))
    assert IdempotencyKey.objects.count() == 1


@pytest.mark.parametrize("model", [Hook, Script])
def test_a_call_beyond_the_runs_at_once_is_refused(
    issued: IssuedHook, monkeypatch: pytest.MonkeyPatch, model: type
) -> None:
    monkeypatch.setattr(concurrent_runs, "WAIT_SECONDS", 0.1)
    model._default_manager.update(max_concurrent_runs=1)  # type: ignore[attr-defined]
    assert post(issued).status_code == 201
    take_lease(ConcurrencyLimits(issued.hook.pk, issued.hook.script_id, 1, 1), run_seconds=11)

    assert_refused(post(issued), 503, "busy", range(10, 12))
    assert Run.objects.count() == 1
    RunLease.objects.all().delete()
    assert post(issued).status_code == 201


def test_a_delivery_refused_as_busy_runs_when_it_comes_again(
    issued: IssuedHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concurrent_runs, "WAIT_SECONDS", 0.1)
    set_rules(issued.hook, idempotency="body-hash", max_concurrent_runs=1)
    take_lease(ConcurrencyLimits(issued.hook.pk, issued.hook.script_id, 1, None), run_seconds=11)
    assert_refused(post(issued), 503, "busy", range(10, 12))
    RunLease.objects.all().delete()

    assert (post(issued).status_code, Run.objects.count()) == (201, 1)


def test_the_id_of_a_signed_event_makes_deliveries_equal(issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="hmac", hmac=HMAC, event_id_pointers=["/id"])
    set_secret_of(issued.hook, SECRET)
    bodies = [b'{"id": "evt_1", "n": 1}', b'{"id": "evt_1", "n": 2}', b'{"id": "evt_2"}']
    replies = [post(issued, body, **signed(body)) for body in bodies]

    assert [reply.content for reply in replies] == [b"1", b"1", b"2"]
    assert replies[1]["Moonhook-Duplicate-Of"] == replies[0]["Moonhook-Run-Id"]
    assert [run.event_id for run in Run.objects.order_by("id")] == ["evt_1", "evt_2"]


def test_a_signed_call_without_an_event_id_runs_and_is_flagged(issued: IssuedHook) -> None:
    set_rules(issued.hook, sender="hmac", hmac=HMAC, event_id_pointers=["/id"])
    set_secret_of(issued.hook, SECRET)
    replies = [post(issued, b"{}", **signed(b"{}")) for _ in range(2)]

    assert [reply.content for reply in replies] == [b"1", b"2"]
    assert [run.event_id for run in Run.objects.all()] == ["", ""]
    assert not IdempotencyKey.objects.exists()
