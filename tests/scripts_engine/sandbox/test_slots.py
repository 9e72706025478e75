"""Who may run now."""

from __future__ import annotations

import threading

import pytest

from scripts_engine.sandbox.observer import BusyReason
from scripts_engine.sandbox.slots import FairSlots, NoSlot

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


def test_waiters_enter_in_the_order_of_their_coming():
    slots, entered = FairSlots(1, 1), []
    with slots.hold("acme", 0):
        threads = [wait_in_thread(slots, tenant, entered) for tenant in ("b", "c", "a", "d")]
    for thread in threads:
        thread.join(10)
    assert entered == ["b", "c", "a", "d"]


def test_a_waiter_at_its_share_does_not_hold_up_those_behind_it():
    slots, entered = FairSlots(2, 1), []
    with slots.hold("acme", 0):
        with slots.hold("globex", 0):
            blocked = wait_in_thread(slots, "acme", entered)
            behind = wait_in_thread(slots, "initech", entered)
        behind.join(10)
        assert entered == ["initech"]
    blocked.join(10)
    assert entered == ["initech", "acme"]


def test_who_gives_up_leaves_no_trace():
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
        first.join(10)
        second.join(10)
    assert entered == ["globex", "acme"]


def test_a_tenant_whose_share_of_the_queue_is_full_is_refused_at_once():
    slots, entered = FairSlots(2, 1, queue_size=2, tenant_queue_share=1), []
    with slots.hold("acme", 0):
        waiting = wait_in_thread(slots, "acme", entered)
        with pytest.raises(NoSlot) as refused:
            slots.acquire("acme", 10)
        assert slots.waiting == 1
        with slots.hold("globex", 0):
            assert slots.busy == 2
    waiting.join(10)
    assert refused.value.reason == BusyReason.TENANT_SHARE
    assert refused.value.ahead == 2
    assert entered == ["acme"]


def test_a_full_queue_refuses_everybody_at_once():
    slots, entered = FairSlots(1, 1, queue_size=2, tenant_queue_share=1), []
    with slots.hold("acme", 0):
        waiting = [wait_in_thread(slots, tenant, entered) for tenant in ("b", "c")]
        with pytest.raises(NoSlot) as refused:
            slots.acquire("d", 10)
        assert slots.waiting == 2
    for thread in waiting:
        thread.join(10)
    assert refused.value.reason == BusyReason.ALL_SLOTS
    assert refused.value.ahead == 3
    assert entered == ["b", "c"]
