"""store.*, from scripts."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine import stored_values
from scripts_engine.host import store
from scripts_engine.host.store import StoreCapability, store_turn
from scripts_engine.models import StoredValue
from scripts_engine.sandbox.contract import HostCallError
from tests.concurrency import at_once
from tests.factories import reply_of, run_lua


def lua(organisation: Organisation, source: str) -> str:
    return reply_of(run_lua(organisation, source))


@pytest.mark.parametrize(
    "value",
    ["1", "1.5", '"text"', "true", "false", "null", "[]", "{}", '{"a":[1,{"b":null}]}',
     "9223372036854775807", '"a\\u0000b"'],
)  # fmt: skip
def test_a_value_is_read_as_it_was_set(acme: Organisation, value: str) -> None:
    lua(acme, f"store.set('k', FromJson([==[{value}]==]))")

    assert lua(acme, 'return ToJson(store.get("k"))') == value


def test_what_was_never_set_is_nil(acme: Organisation) -> None:
    assert lua(acme, 'return store.get("k") == nil') == "true"


def test_a_new_value_replaces_the_old_one(acme: Organisation) -> None:
    assert lua(acme, 'store.set("k", 1) store.set("k", 2) return store.get("k")') == "2"
    assert StoredValue.objects.count() == 1


def test_a_deleted_value_is_gone(acme: Organisation) -> None:
    source = 'store.set("k", 1) store.delete("k") store.delete("k") return store.get("k") == nil'

    assert lua(acme, source) == "true"


def test_keys_may_be_any_bytes(acme: Organisation) -> None:
    assert lua(acme, 'store.set("\\0\\255", 1) return store.get("\\0\\255")') == "1"


def test_each_organisation_has_its_own(acme: Organisation, globex: Organisation) -> None:
    lua(acme, 'store.set("k", "of Acme")')

    assert lua(globex, 'return store.get("k") == nil') == "true"
    lua(globex, 'store.delete("k")')
    assert lua(acme, 'return store.get("k")') == "of Acme"


def test_a_value_expires(acme: Organisation) -> None:
    assert lua(acme, 'store.set("k", 1, 60) return store.get("k")') == "1"

    StoredValue.objects.update(expires_at=timezone.now())
    assert lua(acme, 'return store.get("k") == nil') == "true"
    assert lua(acme, 'return store.increment("k")') == "1"


def test_setting_a_value_without_a_ttl_removes_the_ttl(acme: Organisation) -> None:
    lua(acme, 'store.set("k", 1, 60) store.set("k", 1)')

    assert StoredValue.objects.get().expires_at is None


def test_increment_counts_from_nothing_and_by_any_number(acme: Organisation) -> None:
    source = """return {store.increment("n"), store.increment("n", 5), store.increment("n", -2),
        store.increment("n", 0.5), store.get("n")}"""

    assert lua(acme, source) == "[1,6,4,4.5,4.5]"


def test_increment_keeps_the_ttl_of_the_value(acme: Organisation) -> None:
    lua(acme, 'store.set("n", 1, 60) store.increment("n")')

    expires_at = StoredValue.objects.get().expires_at
    assert expires_at is not None
    assert expires_at > timezone.now() + timedelta(seconds=50)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('store.set("", 1)', "1 to 256 bytes"),
        ('store.set(("k"):rep(257), 1)', "1 to 256 bytes"),
        ('store.set("k", ("x"):rep(64 * 1024))', "64 KiB"),
        ('store.set("k", function() end)', "function"),
        ('store.set("k", 0/0)', ""),
        ('store.set("k", 1, 0)', "ttl_seconds"),
        ('store.set("k", 1, -1)', "ttl_seconds"),
        ('store.set("k", 1, 0/0)', "ttl_seconds"),
        ('store.set("k", 1, 1e300)', "ttl_seconds"),
        ('store.set("k", 1, "soon")', "ttl_seconds"),
        ("store.set(5, 1)", "key"),
        ('store.increment("text")', "not a number"),
        ('store.increment("k", "x")', "by"),
        ('store.increment("k", 0/0)', "number"),
        ('store.increment("max")', "out of range"),
    ],
)
def test_an_invalid_key_or_value_is_an_error_and_changes_nothing(
    acme: Organisation, call: str, reason: str
) -> None:
    lua(acme, 'store.set("text", "x") store.set("max", math.maxinteger)')
    before = list(StoredValue.objects.values_list("key", "value"))
    answer = lua(acme, f"local ok, e = pcall(function() {call} end) return tostring(ok) .. e")

    assert answer.startswith("false")
    assert reason in answer
    assert list(StoredValue.objects.values_list("key", "value")) == before


def test_a_full_store_takes_no_new_key_but_new_values(
    acme: Organisation, globex: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_values, "MAX_KEYS", 2)
    lua(acme, 'store.set("a", 1) store.set("b", 1)')
    source = """local ok, problem = pcall(store.set, "c", 1)
        store.set("a", 2) return tostring(ok) .. problem"""

    assert "keys already" in lua(acme, source)
    assert lua(acme, 'return {store.get("a"), store.get("c") == nil}') == "[2,true]"
    lua(globex, 'store.set("c", 1)')


def test_expired_values_make_room(acme: Organisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_values, "MAX_KEYS", 1)
    lua(acme, 'store.set("a", 1, 60)')
    StoredValue.objects.update(expires_at=timezone.now())

    assert lua(acme, 'store.set("b", 1) return store.get("b")') == "1"


@pytest.mark.django_db(transaction=True)
def test_no_increment_is_lost_among_many_at_once(acme: Organisation) -> None:
    threads = 32 if connection.vendor == "postgresql" else 8
    capability = StoreCapability(acme.pk)
    deadline = time.monotonic() + 60
    totals = at_once(threads, lambda _: capability.increment(b"n", 1, deadline=deadline))

    assert sorted(totals) == list(range(1, threads + 1))


WRITES: dict[str, Callable[[StoreCapability, float], object]] = {
    "set": lambda store, deadline: store.set(b"k", b"2", None, deadline=deadline),
    "delete": lambda store, deadline: store.delete(b"k", deadline=deadline),
    "increment": lambda store, deadline: store.increment(b"k", 1, deadline=deadline),
}


@contextmanager
def everything_locked(organisation: Organisation) -> Iterator[None]:
    """Another transaction locks the organisation and its values, for 5 s at most."""
    locked, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Organisation.objects.select_for_update().get(pk=organisation.pk)
            StoredValue.objects.update(value="1")
            locked.set()
            enough.wait(5)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(30)
    yield
    enough.set()
    holder.join(30)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_waits_for_others_no_longer_than_the_run_lasts(
    acme: Organisation, write: str
) -> None:
    capability = StoreCapability(acme.pk)
    capability.set(b"k", b"1", None, deadline=time.monotonic() + 60)
    with everything_locked(acme), pytest.raises(OperationalError):
        WRITES[write](capability, time.monotonic() + 0.3)

    assert StoredValue.objects.get().value == "1"
    WRITES[write](capability, time.monotonic() + 60)
    assert [row.value for row in StoredValue.objects.all()] in ([], ["2"])


@pytest.mark.parametrize("write", WRITES)
def test_a_write_after_the_run_does_nothing(acme: Organisation, write: str) -> None:
    capability = StoreCapability(acme.pk)
    capability.set(b"k", b"1", None, deadline=time.monotonic() + 60)
    with pytest.raises(TimeoutError):
        WRITES[write](capability, time.monotonic() - 1)

    assert StoredValue.objects.get().value == "1"


@contextmanager
def a_write_under_way(organisation: Organisation) -> Iterator[None]:
    """Another run of the organisation is writing."""
    with ThreadPoolExecutor(1) as executor:
        turn = store_turn(organisation.pk, time.monotonic() + 60)
        executor.submit(turn.__enter__).result()
        try:
            yield
        finally:
            executor.submit(turn.__exit__, None, None, None).result()


@pytest.mark.parametrize("write", WRITES)
def test_a_write_waits_for_another_run_of_the_organisation_without_the_database(
    acme: Organisation, write: str, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(store, "MAX_WAIT_SECONDS", 0.01)
    capability = StoreCapability(acme.pk)
    with (
        a_write_under_way(acme),
        django_assert_num_queries(0),
        pytest.raises(HostCallError, match="busy with other runs of the organisation"),
    ):
        WRITES[write](capability, time.monotonic() + 60)

    assert not StoredValue.objects.exists()
    WRITES[write](capability, time.monotonic() + 60)
    assert store._turns == {}


def test_a_script_may_try_again_when_the_store_is_busy(
    acme: Organisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_WAIT_SECONDS", 0.01)
    with a_write_under_way(acme):
        answer = lua(acme, 'local ok, e = pcall(store.set, "k", 1) return tostring(ok) .. e')

    assert answer.startswith("false")
    assert "try again" in answer


def test_a_write_that_waits_ends_with_its_run(acme: Organisation) -> None:
    with a_write_under_way(acme), pytest.raises(TimeoutError):
        StoreCapability(acme.pk).set(b"k", b"1", None, deadline=time.monotonic() + 0.05)

    assert not StoredValue.objects.exists()


def test_another_organisation_does_not_wait(acme: Organisation, globex: Organisation) -> None:
    with a_write_under_way(acme):
        lua(globex, 'store.set("k", 1)')

    assert StoredValue.objects.get().organisation == globex
