"""store.*, from scripts."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
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
from scripts_engine.sandbox import HostCallError
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


def test_an_unknown_key_is_nil(acme: Organisation) -> None:
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
        ('store.set_if_absent("", 1)', "store.set_if_absent: a key is a string of 1 to 256 bytes"),
        ('store.set_if_absent("n", ("x"):rep(64 * 1024))', "64 KiB"),
        ('store.set_if_absent("n", function() end)', "store.set_if_absent: "),
        ('store.set_if_absent("n", 1, 60)', "options: table expected"),
        ('store.set_if_absent("n", 1, {tll = 60})', "unknown option tll"),
        ('store.set_if_absent("n", 1, {ttl = "60"})', "ttl: number expected"),
        ('store.set_if_absent("n", 1, {ttl = 0})', "ttl must be over 0"),
        ('store.set_if_absent("n", 1, {ttl = 0/0})', "ttl must be over 0"),
        ('store.list("k")', "store.list: limit: number expected, got nil"),
        ("store.list(nil, 1)", "store.list: prefix: string expected"),
        ('store.list("k", 0)', "store.list: the limit must be a whole number from 1 to 1,000"),
        ('store.list("k", 1001)', "from 1 to 1,000"),
        ('store.list("k", 1.5)', "from 1 to 1,000"),
        ('store.list("k", 0/0)', "from 1 to 1,000"),
        ('store.list("k", math.huge)', "from 1 to 1,000"),
        ('store.list(("k"):rep(257), 1)', "the prefix is a string of up to 256 bytes"),
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
        local also, same = pcall(store.set_if_absent, "c", 1)
        store.set("a", 2) return tostring(ok or also) .. problem .. same"""

    assert lua(acme, source).count("keys already") == 2
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


def test_set_if_absent_says_whether_it_set_the_value(acme: Organisation) -> None:
    source = """return {store.set_if_absent("k", 1), store.set_if_absent("k", 2), store.get("k")}"""

    assert lua(acme, source) == "[true,false,1]"


def test_set_if_absent_takes_a_ttl_and_an_expired_value_for_absent(acme: Organisation) -> None:
    assert lua(acme, 'return store.set_if_absent("k", "old", {ttl = 60})') == "true"
    assert lua(acme, 'return store.set_if_absent("k", "new", {ttl = 60})') == "false"

    StoredValue.objects.update(expires_at=timezone.now())
    assert lua(acme, 'return {store.set_if_absent("k", "new"), store.get("k")}') == '[true,"new"]'
    assert StoredValue.objects.get().expires_at is None


def test_set_if_absent_keeps_the_ttl_of_a_value_that_is_there(acme: Organisation) -> None:
    lua(acme, 'store.set("k", 1, 60) return store.set_if_absent("k", 2, {ttl = 6000})')

    expires_at = StoredValue.objects.get().expires_at
    assert expires_at is not None
    assert expires_at < timezone.now() + timedelta(seconds=61)


def without_turn(_organisation_id: Any, _deadline: float) -> nullcontext[None]:
    """Lets the database alone decide, as between processes."""
    return nullcontext()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [store.store_turn, without_turn])
def test_exactly_one_of_many_at_once_sets_an_absent_value(
    acme: Organisation, turn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "store_turn", turn)
    threads = 32 if connection.vendor == "postgresql" else 100
    capability = StoreCapability(acme.pk)
    deadline = time.monotonic() + 60
    won = at_once(
        threads,
        lambda number: capability.set_if_absent(b"k", b"%d" % number, None, deadline=deadline),
    )

    assert won.count(True) == 1
    assert StoredValue.objects.get().value == str(won.index(True))


def test_list_answers_the_sorted_keys_of_the_organisation(
    acme: Organisation, globex: Organisation
) -> None:
    lua(acme, 'for _, k in ipairs{"seen:9", "seen:10", "seenX", "other"} do store.set(k, 1) end')
    lua(globex, 'store.set("seen:of globex", 1)')

    assert lua(acme, 'return store.list("seen:", 10)') == '["seen:10","seen:9"]'
    assert lua(acme, 'return store.list("seen:", 1)') == '["seen:10"]'
    assert lua(acme, 'return store.list("", 10)') == '["other","seen:10","seen:9","seenX"]'
    assert lua(acme, 'return store.list("nothing", 10)') == "[]"


def test_list_leaves_out_expired_keys(acme: Organisation) -> None:
    lua(acme, 'store.set("a", 1, 60) store.set("b", 1) store.set("c", 1)')
    StoredValue.objects.filter(key=b"a").update(expires_at=timezone.now())

    assert lua(acme, 'return store.list("", 2)') == '["b","c"]'


@pytest.mark.parametrize(
    ("prefix", "found"),
    [
        (r"%", '["%"]'),
        (r"_", '["_"]'),
        (r"a%", '["a%b"]'),
        (r"\255", '["FF","FF FF"]'),
        (r"\255\255", '["FF FF"]'),
        (r"a\255", '["a FF"]'),
        (r"\0", '["00"]'),
        (r"'", "[]"),
    ],
)
def test_a_prefix_is_bytes_and_not_a_pattern(acme: Organisation, prefix: str, found: str) -> None:
    lua(
        acme,
        r"""for _, k in ipairs{"%", "_", "a%b", "axb", "a\255", "b", "\255", "\255\255", "\0"} do
            store.set(k, 1) end""",
    )
    source = rf"""local shown = array{{}}
        for i, key in ipairs(store.list("{prefix}", 9)) do
            shown[i] = key:gsub("\255", " FF"):gsub("\0", "00"):gsub("^ ", "")
        end
        return shown"""

    assert lua(acme, source) == found


def test_a_list_of_the_longest_keys_arrives(acme: Organisation) -> None:
    StoredValue.objects.bulk_create(
        StoredValue(organisation=acme, key=b"%0256d" % number, value="1") for number in range(1001)
    )

    assert lua(acme, 'return #table.concat(store.list("0", 1000))') == "256000"


@pytest.mark.django_db
def test_a_list_is_read_in_the_order_of_an_index(acme: Organisation) -> None:
    rows = StoredValue.objects.of_organisation(acme).live().beginning_with(b"seen:")
    StoredValue.objects.bulk_create(
        StoredValue(organisation=acme, key=b"seen:%d" % number, value="1") for number in range(2000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scripts_engine_storedvalue")
    plan = rows.order_by("key").values_list("key")[:10].explain()

    assert re.search("one_value_per_key_and_organisation|sqlite_autoindex", plan)
    assert "sort" not in plan.lower()
    assert "TEMP B-TREE" not in plan


WRITES: dict[str, Callable[[StoreCapability, float], object]] = {
    "set": lambda store, deadline: store.set(b"k", b"2", None, deadline=deadline),
    "set_if_absent": lambda store, deadline: store.set_if_absent(
        b"other", b"2", None, deadline=deadline
    ),
    "delete": lambda store, deadline: store.delete(b"k", deadline=deadline),
    "increment": lambda store, deadline: store.increment(b"k", 1, deadline=deadline),
}

# Whether there is a value is asked once before the turn.
LOOK_UPS_BEFORE = {"set_if_absent": 1}


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
    assert [row.value for row in StoredValue.objects.all()] in ([], ["2"], ["1", "2"])


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
        django_assert_num_queries(LOOK_UPS_BEFORE.get(write, 0)),
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
