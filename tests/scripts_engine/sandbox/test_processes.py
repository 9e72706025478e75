"""The processes of the sandbox: their rights, descriptors and memory, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts_engine.sandbox.contract import LayerName
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.parent.child_process import ForkClient
from scripts_engine.sandbox.parent.layers import active_layers
from scripts_engine.sandbox.protocol import FORK
from tests.size import sized

from .conftest import run_in
from .processes import children_of, descriptors_of, is_running, wait_until, zombies_of

PROJECT_ROOT = Path(__file__).resolve().parents[3]
WORKER = """
import signal, sys, threading
# As in a terminal: background processes of a shell ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[1])
from scripts_engine.sandbox.contract import Job
from scripts_engine.sandbox.parent.pool import SandboxPool
pool = SandboxPool()
pool.run("acme", Job(source=b"return 1", chunk_name="idle"))
spin = Job(source=b"while true do end", chunk_name="spin")
threading.Thread(target=pool.run, args=("globex", spin), daemon=True).start()
while pool.stats().busy == 0:
    pass
print(pool.fork_server_pid(), flush=True)
threading.Event().wait()
"""

FEW_OPEN_FILES = """
import os, resource, sys
sys.path.insert(0, sys.argv[1])
from scripts_engine.sandbox.contract import Job
from scripts_engine.sandbox.parent.pool import SandboxPool, SandboxUnavailable
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
pool = SandboxPool()
def run(tenant, source=b"return 1", host=None):
    try:
        return pool.run(tenant, Job(source=source, chunk_name="x"), host).kind
    except SandboxUnavailable as error:
        return str(error)
def open_all_but(count):
    opened = []
    try:
        while True:
            opened.append(os.open("/", os.O_RDONLY))
    except OSError:
        for _ in range(count):
            os.close(opened.pop())
    return opened
def close(opened):
    for each in opened:
        os.close(each)
"""
EVICTING = """
for tenant in ("acme", "globex", "initech"):
    run(tenant)
opened = open_all_but(0)
print(run("hooli"), pool.stats().evicted)
print(run("initech"), pool.stats().spawned)
print(run("acme"), pool.stats().spawned)
print(pool.stats().fork_servers)
"""
NOTHING_IDLE = """
run("acme")
def inner(name, arguments, *, deadline, note):
    for free in range(4):
        opened = open_all_but(free)
        print(run("globex"), pool.stats().children)
        left = open_all_but(0)
        print(len(left) == free)
        close(opened + left)
    print(run("globex"))
print(run("acme", b"store.get('k')", inner))
print(pool.stats().fork_servers, pool.stats().children)
"""
FORK_REFUSED = """
run("acme")
def inner(name, arguments, *, deadline, note):
    server = pool.fork_server_pid()
    _, hard = limits = resource.prlimit(server, resource.RLIMIT_NOFILE)
    resource.prlimit(server, resource.RLIMIT_NOFILE, (4, hard))
    print(run("globex"), pool.stats().children)
    resource.prlimit(server, resource.RLIMIT_NOFILE, limits)
    print(run("globex"))
print(run("acme", b"store.get('k')", inner))
print(pool.stats().fork_servers, pool.stats().children)
"""
NO_FORK_SERVER = """
opened = open_all_but(0)
print(run("acme"))
left = open_all_but(0)
print(len(left))
close(opened + left)
print(run("acme"))
print(pool.stats().fork_servers)
"""


@pytest.fixture
def worker():
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(PROJECT_ROOT)], stdout=subprocess.PIPE
    )
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_survives_its_worker_not_even_in_a_busy_loop(worker, ending):
    server = int(worker.stdout.readline())
    wait_until(lambda: len(children_of(server)) == 2)
    children = children_of(server)
    worker.send_signal(ending)
    worker.wait(60)
    wait_until(lambda: not any(is_running(pid) for pid in {server, *children}))


def lines_of(script):
    command = [sys.executable, "-c", f"{FEW_OPEN_FILES}{script}pool.close()", str(PROJECT_ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_worker_without_open_files_evicts_the_children_unused_longest():
    # Acme's and globex's, for the four descriptors of a new one.
    assert lines_of(EVICTING) == ["succeeded 2", "succeeded 4", "succeeded 5", "1"]


def test_a_worker_without_open_files_or_idle_children_refuses_runs_and_leaks_none():
    refused = ["too many open files 1", "True"]
    assert lines_of(NOTHING_IDLE) == [*refused * 4, "succeeded", "succeeded", "1 2"]


def test_a_fork_server_that_cannot_fork_keeps_its_children():
    expected = ["too many open files 1", "succeeded", "succeeded", "1 2"]
    assert lines_of(FORK_REFUSED) == expected


def test_a_fork_server_that_cannot_start_is_started_by_a_later_run():
    assert lines_of(NO_FORK_SERVER) == ["too many open files", "0", "succeeded", "1"]


def test_a_signal_to_the_terminal_group_does_not_reach_the_sandbox(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    server = pool.fork_server_pid()
    (child,) = children_of(server)
    assert os.getsid(server) != os.getsid(0)
    assert os.getpgid(child) != os.getpgid(0)


@pytest.fixture
def child(new_pool):
    pool = new_pool()
    run_in(pool, "return 1")
    (pid,) = children_of(pool.fork_server_pid())
    return pid


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a locked-down process")
def test_a_child_holds_its_socket_and_nothing_else(child):
    entries = Path(f"/proc/{child}/fd").iterdir()
    targets = {entry.name: str(entry.readlink()) for entry in entries}
    assert {targets[n] for n in "012"} == {"/dev/null"}
    assert targets["3"].startswith("socket:")
    assert len(targets) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a locked-down process")
def test_a_child_inherits_neither_environment_nor_working_folder(child):
    assert b"PATH=" not in Path(f"/proc/{child}/environ").read_bytes()
    assert Path(f"/proc/{child}/cwd").resolve() == Path("/")


def test_a_child_is_locked_down(child):
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines()
    )
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert status["Threads"] == "1"
    limits = Path(f"/proc/{child}/limits").read_text()
    assert [line.split()[3:5] for line in limits.splitlines() if "open files" in line] == [
        ["0", "0"]
    ]
    assert [line.split()[3:5] for line in limits.splitlines() if "address space" in line] == [
        [str(512 * 1024 * 1024)] * 2
    ]


def test_every_layer_is_active_when_really_tried():
    layers = {layer.name: layer for layer in active_layers()}
    assert set(layers) == set(LayerName)
    assert layers["seccomp"].is_active
    assert layers["rlimits"].is_active
    assert layers["no_new_privs"].is_active
    assert layers["pdeathsig"].is_active
    assert layers["landlock"].is_active or layers["landlock"].detail


def resident_kilobytes(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_a_child_gives_back_the_memory_of_a_run_that_used_all_of_it(new_pool):
    pool = new_pool()
    source = """
        pcall(function()
            local t = {}
            while true do t[#t + 1] = ("x"):rep(1e5) .. #t end
        end)
        return "survived"
    """
    for _ in range(10):
        outcome = run_in(pool, source)
        assert (outcome.kind, outcome.error) == ("succeeded", None)
    (child,) = children_of(pool.fork_server_pid())
    wait_until(lambda: resident_kilobytes(child) < 40_000)


def use_and_kill(pool, runs, kills):
    for number in range(runs):
        assert run_in(pool, "print(1)\nreturn 1", tenant=f"tenant-{number % 3}").kind == "succeeded"
    for _ in range(kills):
        outcome = run_in(pool, "while true do end", limits=Limits(wall_seconds=0.01))
        assert outcome.kind == "timed-out"


def assert_nothing_leaks(pool, runs, kills):
    use_and_kill(pool, 30, 3)
    run_in(pool, "return 1", tenant="tenant-0")
    server = pool.fork_server_pid()
    before = descriptors_of(os.getpid()), descriptors_of(server), pool.stats().children
    use_and_kill(pool, runs, kills)
    run_in(pool, "return 1", tenant="tenant-0")
    wait_until(lambda: zombies_of(server) == 0)
    wait_until(lambda: len(children_of(server)) == pool.stats().children)
    after = descriptors_of(os.getpid()), descriptors_of(server), pool.stats().children
    assert after == before


def test_runs_leave_no_descriptor_and_no_zombie(new_pool):
    assert_nothing_leaks(new_pool(runs_per_child=50), runs=300, kills=10)


@pytest.mark.slow
def test_thousands_of_runs_and_many_kills_leave_no_descriptor_and_no_zombie(new_pool):
    runs, kills = sized(small=(1_500, 20), full=(10_000, 100))
    assert_nothing_leaks(new_pool(), runs=runs, kills=kills)


def test_no_function_of_the_surface_makes_a_forbidden_system_call(new_pool):
    """The allow-list of system calls covers what honest scripts do."""
    pool = new_pool()
    source = """
        local big = {}
        for i = 1, 2e5 do big[i] = tostring(i) end
        big = table.concat(big)
        pcall(error, "x")
        pcall(string.rep, "x", 1e9)
        os.date("*t") os.date("%c") os.time() os.clock() os.date("!%H")
        time.now() time.format(0) uuid.v4() crypto.random_hex(64) crypto.sha256(big)
        crypto.hmac_sha1("k", big) crypto.hmac_sha256("k", big)
        FromJson(ToJson({big})) base64.decode(base64.encode(big))
        math.randomseed()
        print(big)
        return "alive"
    """
    for _ in range(10):
        assert run_in(pool, source).reply.body == b"alive"
    assert pool.stats().killed == 0


def test_the_deadline_is_kept_by_the_worker(new_pool):
    started = time.monotonic()
    limits = Limits(wall_seconds=0.2, cpu_seconds=60)
    outcome = run_in(new_pool(), "while true do end", limits=limits)
    assert outcome.kind == "timed-out"
    assert time.monotonic() - started < 30


def test_a_fork_server_whose_worker_is_killed_within_a_request_ends_without_a_word(
    capfd: pytest.CaptureFixture[str],
) -> None:
    client = ForkClient()
    _, channel, *descriptors = client.fork()
    os.kill(client.pid, signal.SIGSTOP)
    client._control.send(FORK)
    client._control.close()
    os.kill(client.pid, signal.SIGCONT)
    status = client._process.wait(60)
    channel.close()
    for descriptor in descriptors:
        os.close(descriptor)

    assert (status, capfd.readouterr().err) == (0, "")
