"""The fair sharing of slots between tenants."""

from __future__ import annotations

import threading

import pytest

from scripts_engine.sandbox.parent.waiting import BusyReason, FairSlots, NoSlot

from .processes import wait_until


def wait_in_thread(slots, tenant, entered):
    def hold():
        with slots.hold(tenant, 10):
            entered.append(tenant)

    thread = threading.Thread(target=hold)
    waiting = slots.waiting
    thread.start()
    wait_until(lambda: slots.waiting == waiting + 1)
    return thread


def test_waiters_enter_in_the_order_of_arrival():
    slots, entered = FairSlots(1, 1), []
    with slots.hold("acme", 0):
        threads = [wait_in_thread(slots, tenant, entered) for tenant in ("b", "c", "a", "d")]
    for thread in threads:
        thread.join(60)
    assert entered == ["b", "c", "a", "d"]


def test_a_waiter_at_its_share_does_not_delay_others():
    slots, entered = FairSlots(2, 1), []
    with slots.hold("acme", 0):
        with slots.hold("globex", 0):
            blocked = wait_in_thread(slots, "acme", entered)
            behind = wait_in_thread(slots, "initech", entered)
        behind.join(60)
        assert entered == ["initech"]
    blocked.join(60)
    assert entered == ["initech", "acme"]


def test_a_waiter_that_gives_up_leaves_the_queue():
    slots = FairSlots(1, 1)
    with slots.hold("acme", 0), pytest.raises(NoSlot):
        slots.acquire("globex", 0.01)
    assert (slots.busy, slots.waiting) == (0, 0)
    with slots.hold("globex", 0):
        assert slots.busy == 1


def test_an_error_inside_gives_the_slot_back():
    slots = FairSlots(1, 1)
    with pytest.raises(ZeroDivisionError), slots.hold("acme", 0):
        raise ZeroDivisionError
    assert slots.busy == 0


def test_the_next_slot_goes_to_the_waiting_tenant_that_holds_the_fewest():
    slots, entered = FairSlots(2, 2), []
    with slots.hold("acme", 0):
        with slots.hold("acme", 0):
            second = wait_in_thread(slots, "acme", entered)
            first = wait_in_thread(slots, "globex", entered)
        first.join(60)
        second.join(60)
    assert entered == ["globex", "acme"]


def test_a_tenant_alone_may_fill_the_queue():
    slots, entered = FairSlots(1, 1, queue_size=2, tenant_queue_share=1), []
    with slots.hold("acme", 0):
        waiting = [wait_in_thread(slots, "acme", entered) for _ in range(2)]
        with pytest.raises(NoSlot) as refused:
            slots.acquire("acme", 10)
        assert slots.waiting == 2
    for thread in waiting:
        thread.join(60)
    assert refused.value.reason == BusyReason.TENANT_SHARE
    assert refused.value.ahead == 3
    assert entered == ["acme", "acme"]


def test_the_newest_waiter_of_the_largest_tenant_makes_room_for_another_tenant():
    slots, entered, refused = FairSlots(1, 1, queue_size=3, tenant_queue_share=1), [], []

    def wait_and_be_displaced():
        with pytest.raises(NoSlot) as displaced:
            slots.acquire("acme", 10)
        refused.append(displaced.value.reason)

    with slots.hold("acme", 0):
        first = wait_in_thread(slots, "acme", entered)
        other = wait_in_thread(slots, "initech", entered)
        newest = threading.Thread(target=wait_and_be_displaced)
        newest.start()
        wait_until(lambda: slots.waiting == 3)
        globex = threading.Thread(target=lambda: slots.acquire("globex", 10))
        globex.start()
        newest.join(60)
        assert refused == [BusyReason.TENANT_SHARE]
        assert slots.waiting == 3
    wait_until(lambda: slots.waiting == 0)
    slots.release("globex")
    for thread in (first, other, globex):
        thread.join(60)
    assert sorted(entered) == ["acme", "initech"]
    assert (slots.busy, slots.waiting) == (0, 0)


def test_a_tenant_at_its_share_of_a_full_queue_displaces_nobody():
    slots, entered = FairSlots(1, 1, queue_size=4, tenant_queue_share=1), []
    with slots.hold("acme", 0):
        waiting = [wait_in_thread(slots, tenant, entered) for tenant in ("b", "b", "b", "c")]
        with pytest.raises(NoSlot) as refused:
            slots.acquire("c", 10)
        assert slots.waiting == 4
    for thread in waiting:
        thread.join(60)
    assert refused.value.reason == BusyReason.TENANT_SHARE
    assert entered == ["b", "b", "b", "c"]


def test_a_full_queue_refuses_every_tenant_at_once():
    slots, entered = FairSlots(1, 1, queue_size=2, tenant_queue_share=1), []
    with slots.hold("acme", 0):
        waiting = [wait_in_thread(slots, tenant, entered) for tenant in ("b", "c")]
        with pytest.raises(NoSlot) as refused:
            slots.acquire("d", 10)
        assert slots.waiting == 2
    for thread in waiting:
        thread.join(60)
    assert refused.value.reason == BusyReason.ALL_SLOTS
    assert refused.value.ahead == 3
    assert entered == ["b", "c"]


def test_a_tenant_that_need_not_prepare_passes_those_that_must():
    slots, entered = FairSlots(3, 3, must_prepare="prepared".__ne__), []
    with slots.hold("acme", 0) as acme:
        globex = wait_in_thread(slots, "globex", entered)
        with slots.hold("prepared", 0):
            assert (slots.busy, slots.waiting, entered) == (2, 1, [])
        acme.is_prepared()
        globex.join(60)
        assert entered == ["globex"]
    assert (slots.busy, slots.waiting) == (0, 0)


def test_a_waiter_that_need_no_longer_prepare_enters():
    to_prepare, entered = {"acme", "globex"}, []
    slots = FairSlots(3, 3, must_prepare=to_prepare.__contains__)
    with slots.hold("acme", 0), slots.hold("initech", 0):
        waiting = wait_in_thread(slots, "globex", entered)
        to_prepare.remove("globex")
        with slots.hold("initech", 0):
            pass
        waiting.join(60)
        assert entered == ["globex"]


def test_a_failed_preparation_makes_room_for_the_next():
    slots = FairSlots(3, 3, must_prepare=lambda _tenant: True)
    with pytest.raises(ZeroDivisionError), slots.hold("acme", 0):
        raise ZeroDivisionError
    with slots.hold("globex", 0) as globex:
        globex.is_prepared()
        with slots.hold("acme", 0):
            assert slots.busy == 2


def test_tenants_that_hold_nothing_prepare_before_one_that_asks_twice():
    slots, entered = FairSlots(4, 4, must_prepare=lambda _tenant: True), []
    with slots.hold("acme", 0) as acme:
        second = wait_in_thread(slots, "acme", entered)
        first = wait_in_thread(slots, "globex", entered)
        acme.is_prepared()
        first.join(60)
        second.join(60)
    assert entered == ["globex", "acme"]
