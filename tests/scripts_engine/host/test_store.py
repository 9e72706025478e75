"""store.*, from scripts."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Organisation
from scripts_engine.host import store
from scripts_engine.host.store import StoreCapability
from scripts_engine.models import StoredValue
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


def test_a_set_value_takes_the_place_of_the_old_one(acme: Organisation) -> None:
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


def test_a_value_ends_with_its_time(acme: Organisation) -> None:
    assert lua(acme, 'store.set("k", 1, 60) return store.get("k")') == "1"

    StoredValue.objects.update(expires_at=timezone.now())
    assert lua(acme, 'return store.get("k") == nil') == "true"
    assert lua(acme, 'return store.increment("k")') == "1"


def test_setting_anew_without_a_time_keeps_it_for_good(acme: Organisation) -> None:
    lua(acme, 'store.set("k", 1, 60) store.set("k", 1)')

    assert StoredValue.objects.get().expires_at is None


def test_increment_counts_from_nothing_and_by_any_number(acme: Organisation) -> None:
    source = """return {store.increment("n"), store.increment("n", 5), store.increment("n", -2),
        store.increment("n", 0.5), store.get("n")}"""

    assert lua(acme, source) == "[1,6,4,4.5,4.5]"


def test_increment_keeps_the_time_of_the_value(acme: Organisation) -> None:
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
        ('store.increment("text")', "no number"),
        ('store.increment("k", "x")', "by"),
        ('store.increment("k", 0/0)', "number"),
        ('store.increment("max")', "out of range"),
    ],
)
def test_what_cannot_be_kept_is_an_error_and_changes_nothing(
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
    monkeypatch.setattr(store, "MAX_KEYS", 2)
    lua(acme, 'store.set("a", 1) store.set("b", 1)')
    source = """local ok, problem = pcall(store.set, "c", 1)
        store.set("a", 2) return tostring(ok) .. problem"""

    assert "keys already" in lua(acme, source)
    assert lua(acme, 'return {store.get("a"), store.get("c") == nil}') == "[2,true]"
    lua(globex, 'store.set("c", 1)')


def test_expired_values_make_room(acme: Organisation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_KEYS", 1)
    lua(acme, 'store.set("a", 1, 60)')
    StoredValue.objects.update(expires_at=timezone.now())

    assert lua(acme, 'store.set("b", 1) return store.get("b")') == "1"


@pytest.mark.django_db(transaction=True)
def test_no_increment_is_lost_among_many_at_once(acme: Organisation) -> None:
    threads = 32 if connection.vendor == "postgresql" else 8
    capability = StoreCapability(acme.pk)
    totals = at_once(threads, lambda _: capability.increment(b"n", 1, deadline=0))

    assert sorted(totals) == list(range(1, threads + 1))
