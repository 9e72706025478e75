"""The pool: runs at once, refusals, its end, and its forked copies."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, Limits
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable

from .conftest import held_slots, run_in
from .processes import children_of, wait_until


def test_more_processes_do_not_let_more_scripts_run_at_once(new_pool):
    pool = new_pool(size=1, processes=4, queue_seconds=0.05)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy):
        run_in(pool, "return 1", tenant="globex")


def test_fewer_processes_than_slots_are_refused(new_pool):
    with pytest.raises(ValueError, match="a process for each slot"):
        new_pool(size=2, processes=1)


def test_a_run_whose_child_is_killed_fails_and_is_not_retried(new_pool):
    pool = new_pool()
    calls = []

    def kill_the_child(name, args, *, deadline, note):
        calls.append(name)
        (child,) = children_of(pool.fork_server_pid())
        os.kill(child, 9)
        return 1

    outcome = run_in(pool, "store.increment('k')\nreturn 'ok'", host=kill_the_child)
    assert outcome.kind == "failed"
    assert outcome.error.message == "the sandbox process was ended from outside"
    assert calls == ["store.increment"]
    assert run_in(pool, "return 2").reply.body == b"2"


def test_many_threads_and_tenants_get_their_own_answers(new_pool):
    pool = new_pool(size=4, tenant_share=2, queue_seconds=30, queue_size=32)

    def echo(number):
        body = str(number).encode()
        source = "return params.get('body')"
        return run_in(pool, source, tenant=f"tenant-{number % 5}", params={"body": body}).reply.body

    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(echo, range(600)))
    assert answers == [str(number).encode() for number in range(600)]
    assert pool.stats().busy == 0
    assert pool.stats().children <= 4


def test_a_tenant_at_its_share_is_busy_and_others_run(new_pool):
    pool = new_pool(size=4, queue_seconds=0.05)
    with held_slots(pool, ["acme", "acme"]):
        with pytest.raises(SandboxBusy) as busy:
            run_in(pool, "return 1", tenant="acme")
        assert busy.value.retry_after >= 1
        assert run_in(pool, "return 1", tenant="globex").kind == "succeeded"
    assert run_in(pool, "return 1", tenant="acme").kind == "succeeded"


def test_all_slots_taken_is_busy(new_pool):
    pool = new_pool(size=2, queue_seconds=0.05)
    with held_slots(pool, ["acme", "globex"]):
        with pytest.raises(SandboxBusy):
            run_in(pool, "return 1", tenant="initech")
        with pytest.raises(SandboxBusy):
            pool.check_syntax("initech", b"return 1", "demo")
        assert pool.stats().waiting == 0


def test_a_tenant_that_fills_the_queue_delays_no_other(new_pool):
    pool = new_pool(size=2, queue_size=2, queue_seconds=60)
    with ThreadPoolExecutor(2) as executor:
        with held_slots(pool, ["acme"]):
            waiting = [executor.submit(run_in, pool, "return 1", tenant="acme") for _ in range(2)]
            wait_until(lambda: pool.stats().waiting == 2)
            with pytest.raises(SandboxBusy):
                run_in(pool, "return 1", tenant="acme")
            assert pool.stats().waiting == 2
            assert run_in(pool, "return 1", tenant="globex").kind == "succeeded"
        assert [each.result().kind for each in waiting] == ["succeeded"] * 2


def test_a_refusal_estimates_when_a_slot_is_free(new_pool):
    pool = new_pool(size=1, queue_seconds=0)
    limits = Limits(wall_seconds=MAX_WALL_SECONDS)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy) as before_any_has_ended:
        run_in(pool, "return 1", tenant="acme", limits=limits)
    with held_slots(pool, ["acme"]), pytest.raises(SandboxBusy) as at_the_mean:
        run_in(pool, "return 1", tenant="acme", limits=limits)
    assert before_any_has_ended.value.retry_after == MAX_WALL_SECONDS
    assert 1 <= at_the_mean.value.retry_after < MAX_WALL_SECONDS


def test_waiting_for_a_slot_is_not_counted_as_running(new_pool):
    pool = new_pool(size=2, queue_seconds=20)
    limits = Limits(wall_seconds=1)
    with ThreadPoolExecutor(1) as executor:
        with held_slots(pool, ["acme"]):
            waiting = executor.submit(run_in, pool, "return 1", tenant="acme", limits=limits)
            wait_until(lambda: pool.stats().waiting == 1)
            time.sleep(limits.wall_seconds)
        outcome = waiting.result()
    assert outcome.kind == "succeeded"
    assert outcome.queue_seconds >= limits.wall_seconds
    assert outcome.duration_seconds < limits.wall_seconds


def test_a_tenants_share_is_half_of_the_slots_but_at_least_one(new_pool):
    assert new_pool(size=1).stats().tenant_share == 1
    assert new_pool(size=8).stats().tenant_share == 4
    assert new_pool(size=8, tenant_share=2).stats().tenant_share == 2


def test_a_full_pool_refuses_once_it_is_closed(new_pool):
    pool = new_pool(size=1)
    run_in(pool, "return 1")
    pool.close()
    with pytest.raises(SandboxUnavailable, match="closed"):
        run_in(pool, "return 1", tenant="globex")


def test_a_closed_pool_ends_its_processes_and_refuses(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    server = pool.fork_server_pid()
    pool.close()
    assert not children_of(os.getpid()) & {server}
    with pytest.raises(SandboxUnavailable):
        run_in(pool, "return 1")


def test_a_forked_copy_of_the_process_has_processes_of_its_own(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    server = pool.fork_server_pid()
    read, write = os.pipe()
    copy = os.fork()
    if copy == 0:
        body = run_in(pool, "return 'ran'").reply.body
        os.write(write, body + b" %d" % (pool.fork_server_pid() != server))
        pool.close()
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"ran 1"
    os.waitpid(copy, 0)
    assert run_in(pool, "return 1").kind == "succeeded"
    assert pool.fork_server_pid() == server


def test_duration_and_cpu_time_are_measured(new_pool):
    pool = new_pool()
    before = time.time()
    outcome = run_in(pool, "local stop = os.clock() + 0.2\nwhile os.clock() < stop do end")
    assert outcome.duration_seconds >= 0.2
    assert outcome.cpu_seconds >= 0.2
    assert before - 1 < outcome.started_at < time.time()
