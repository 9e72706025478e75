"""The supervisor, tested with shell commands as services."""

import os
import signal

import pytest

from core.server.supervised_service import become_child
from tests.eventually import eventually
from tests.process_tree import children_of, family_of, is_alive
from tests.supervisor_process import SupervisorProcess

LIVES = 'echo "{name} $$"; exec sleep 600'
STEADY = {"name": "steady", "shell": LIVES.format(name="steady")}
VICTIM = {"name": "victim", "shell": LIVES.format(name="victim")}
DIES = {"name": "victim", "shell": 'echo "victim $$"; exit 3'}


def test_a_dead_service_is_started_again_and_the_others_run_on() -> None:
    with SupervisorProcess([STEADY, VICTIM]).running() as supervisor:
        [steady], [first] = supervisor.wait_for("steady"), supervisor.wait_for("victim")
        os.kill(first, signal.SIGKILL)
        second = supervisor.wait_for("victim", 2)[1]
        children = set(children_of(supervisor.process.pid))
        status = supervisor.stop()

    assert children == {steady, second}
    assert status == 0
    [ended] = supervisor.events("Service ended")
    assert ended.pop("ran_seconds") >= 0
    assert ended == {
        "event": "Service ended",
        "level": "error",
        "service": "victim",
        "pid": first,
        "ended": "killed-by-sigkill",
        "next_start_in_seconds": 0,
    }
    [started] = supervisor.events("Service started again")
    assert (started["service"], started["pid"]) == ("victim", second)


def test_pauses_grow_up_to_the_last_one() -> None:
    with SupervisorProcess([STEADY, DIES], pauses_seconds=[0, 0.1, 0.3]).running() as supervisor:
        supervisor.wait_for("victim", 6)
        [steady] = supervisor.printed("steady")
        was_alive = is_alive(steady)

    ended = supervisor.events("Service ended")
    assert [each["next_start_in_seconds"] for each in ended[:5]] == [0, 0.1, 0.3, 0.3, 0.3]
    assert {each["ended"] for each in ended} == {"exit-status-3"}
    assert was_alive


def test_a_stable_service_starts_over_with_the_first_pause() -> None:
    lives_long_enough = {"name": "victim", "shell": 'echo "victim $$"; sleep 0.4'}
    policy = {"pauses_seconds": [0, 600], "stable_after_seconds": 0.2}
    with SupervisorProcess([lives_long_enough], **policy).running() as supervisor:
        supervisor.wait_for("victim", 4)

    ended = supervisor.events("Service ended")
    assert [each["next_start_in_seconds"] for each in ended[:3]] == [0, 0, 0]


def test_a_service_that_never_serves_stops_the_supervisor() -> None:
    policy = {"pauses_seconds": [0]}
    dies = DIES | {"attempts_to_serve": 3}
    with SupervisorProcess([STEADY, dies], **policy).running() as supervisor:
        status = supervisor.process.wait(timeout=60)

    assert status == 1
    assert len(supervisor.printed("victim")) == 3
    [given_up] = supervisor.events("Service cannot start; stopping")
    assert given_up["level"] == "critical"
    assert (given_up["service"], given_up["ended"]) == ("victim", "exit-status-3")
    # On a busy machine it may be stopped before it prints its process.
    assert not any(is_alive(steady) for steady in supervisor.printed("steady"))


def test_a_service_that_has_served_is_always_restarted() -> None:
    serves = {"name": "victim", "serves": True, "attempts_to_serve": 2}
    with SupervisorProcess([serves], pauses_seconds=[0]).running() as supervisor:
        supervisor.wait_for("serves", 4)
        status = supervisor.stop()

    assert status == 0
    assert supervisor.events("Service cannot start; stopping") == []


def test_a_service_that_cannot_be_forked_does_not_affect_the_others() -> None:
    policy = {"forks": 1, "pauses_seconds": [0]}
    with SupervisorProcess([STEADY, VICTIM], **policy).running() as supervisor:
        eventually(lambda: len(supervisor.events("Service cannot be started", "victim")) > 2)
        [steady] = supervisor.wait_for("steady")
        was_alive = is_alive(steady)
        status = supervisor.stop()

    assert was_alive
    assert status == 0
    assert not is_alive(steady)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_pause_does_not_delay_the_stop(signal_number: int) -> None:
    with SupervisorProcess([STEADY, DIES], pauses_seconds=[600]).running() as supervisor:
        eventually(lambda: supervisor.events("Service ended"))
        [steady] = supervisor.wait_for("steady")
        status = supervisor.stop(signal_number)

    assert status == 0
    assert len(supervisor.printed("victim")) == 1
    assert not is_alive(steady)


def test_a_reload_reaches_running_services_and_ignores_those_in_a_pause() -> None:
    reloads = {
        "name": "reloading",
        "shell": 'trap "echo reloaded 1" USR1; echo "reloading $$"; while :; do sleep 0.1; done',
        "reload_signal": signal.SIGUSR1,
    }
    dies = DIES | {"reload_signal": signal.SIGUSR1}
    services = [reloads, dies, STEADY]
    with SupervisorProcess(services, pauses_seconds=[600]).running() as supervisor:
        eventually(lambda: supervisor.events("Service ended"))
        supervisor.wait_for("reloading")
        supervisor.process.send_signal(signal.SIGHUP)
        supervisor.wait_for("reloaded")
        [steady] = supervisor.wait_for("steady")
        # A process that does not handle the signal keeps running.
        os.kill(steady, signal.SIGHUP)
        # A second reload is done after the signal would have ended it.
        supervisor.process.send_signal(signal.SIGHUP)
        supervisor.wait_for("reloaded", 2)
        were_alive = is_alive(steady)
        status = supervisor.stop()

    assert were_alive
    assert status == 0
    assert len(supervisor.printed("victim")) == 1
    assert len(supervisor.printed("reloading")) == 1


def test_a_service_that_ends_during_the_stop_is_not_restarted() -> None:
    dies_slowly = {
        "name": "victim",
        "shell": 'trap "sleep 1; exit 5" TERM; echo "victim $$"; while :; do sleep 0.1; done',
    }
    with SupervisorProcess([dies_slowly, STEADY]).running() as supervisor:
        supervisor.wait_for("victim")
        supervisor.wait_for("steady")
        status = supervisor.stop()

    assert status == 0
    assert len(supervisor.printed("victim")) == 1
    assert supervisor.events("Service ended") == []


LEAVES_A_CHILD = "sh -c '{trap} echo \"child $$\"; while :; do sleep 0.1; done' & "


def test_the_children_of_a_dead_service_are_terminated() -> None:
    shell = LEAVES_A_CHILD.format(trap="") + VICTIM["shell"]
    with SupervisorProcess(
        [VICTIM | {"shell": shell}], leftovers_seconds=600
    ).running() as supervisor:
        [first], [left] = supervisor.wait_for("victim"), supervisor.wait_for("child")
        os.kill(first, signal.SIGKILL)
        [_, second] = supervisor.wait_for("victim", 2)
        # The list includes zombies, so the child has been reaped too.
        eventually(lambda: left not in children_of(supervisor.process.pid))
        children = children_of(supervisor.process.pid)

    assert second in children
    assert first not in children
    assert not is_alive(left)


@pytest.mark.slow
def test_children_that_ignore_sigterm_are_killed() -> None:
    shell = LEAVES_A_CHILD.format(trap='trap "" TERM;') + VICTIM["shell"]
    with SupervisorProcess(
        [VICTIM | {"shell": shell}], leftovers_seconds=0.2
    ).running() as supervisor:
        [first], [left] = supervisor.wait_for("victim"), supervisor.wait_for("child")
        os.kill(first, signal.SIGKILL)
        eventually(lambda: not is_alive(left))


@pytest.mark.slow
def test_the_children_of_a_dead_service_may_finish_while_its_successor_runs() -> None:
    trap = 'trap "echo asked $$; sleep 1; echo finished $$; exit" TERM;'
    shell = LEAVES_A_CHILD.format(trap=trap) + VICTIM["shell"]
    with SupervisorProcess([VICTIM | {"shell": shell}]).running() as supervisor:
        [first], [left] = supervisor.wait_for("victim"), supervisor.wait_for("child")
        os.kill(first, signal.SIGKILL)
        supervisor.wait_for("asked")
        supervisor.wait_for("victim", 2)
        was_finished = supervisor.printed("finished")
        finished = supervisor.wait_for("finished")

    assert was_finished == []
    assert finished == [left]


def test_an_orphan_in_a_session_of_its_own_does_not_become_a_zombie() -> None:
    shell = "setsid sh -c 'echo \"child $$\"; sleep 1' & " + VICTIM["shell"]
    with SupervisorProcess([VICTIM | {"shell": shell}]).running() as supervisor:
        [first], [orphan] = supervisor.wait_for("victim"), supervisor.wait_for("child")
        os.kill(first, signal.SIGKILL)
        eventually(lambda: orphan in children_of(supervisor.process.pid))
        eventually(lambda: orphan not in children_of(supervisor.process.pid))
        was_alive = is_alive(orphan)

    assert not was_alive


def test_the_services_end_when_the_supervisor_is_killed() -> None:
    with SupervisorProcess([STEADY, VICTIM]).running() as supervisor:
        supervisor.wait_for("steady")
        supervisor.wait_for("victim")
        family = family_of(supervisor.process.pid)
        supervisor.process.kill()
        eventually(lambda: [pid for pid in family[1:] if is_alive(pid)] == [])

    assert len(family) == 3


def test_a_service_that_raises_has_failed_and_says_why() -> None:
    raises = {"name": "victim", "raises": "no such luck"}
    with SupervisorProcess([STEADY, raises], pauses_seconds=[600]).running() as supervisor:
        eventually(lambda: supervisor.events("Service ended"))
        [failed] = supervisor.events("Process failed")
        [ended] = supervisor.events("Service ended")
        [steady] = supervisor.wait_for("steady")
        was_alive = is_alive(steady)

    assert failed["level"] == "error"
    assert "no such luck" in failed["exception"]
    assert ended["ended"] == "exit-status-1"
    assert was_alive


def test_a_signal_to_end_between_the_fork_and_the_set_up_is_not_lost() -> None:
    blocked = {signal.SIGTERM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        process_id = os.fork()
        if process_id == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            become_child(os.getppid())
            os._exit(0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    _, status = os.waitpid(process_id, 0)

    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
