"""A push that is cut at any moment: what is on the server is whole, and the next push goes on."""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from conftest import Client
from cutting_proxy import Cut, CuttingProxy, cutting_proxy
from large_folder import write_folder
from server import Key, Server

SCRIPTS = 10
APPLY = b"applyPlan"
ROUNDS = 25


@pytest.fixture
def proxy(server: Server) -> Iterator[CuttingProxy]:
    with cutting_proxy(server.url) as running:
        yield running


@pytest.fixture
def pushed(client: Client, proxy: CuttingProxy, key: Key) -> Client:
    """A folder that is live, through the proxy."""
    client.ok("login", proxy.url, "--api-key", stdin=f"{key.key}\n{key.secret}\n")
    client.ok("init")
    write_folder(client.folder, SCRIPTS)
    client.ok("push", "--yes")
    return client


def cutting(name: bytes) -> Callable[[bytes], None]:
    def cut(body: bytes) -> None:
        if name in body:
            raise Cut

    return cut


def mend(proxy: CuttingProxy) -> None:
    proxy.before = proxy.after = lambda body: None


def scripts_that_differ(client: Client) -> int:
    return len(client.json("diff")["changes"])


def goes_on(client: Client, edition: int) -> None:
    """Edits every script, and pushes without a pull."""
    write_folder(client.folder, SCRIPTS, edition)
    client.ok("push", "--yes")
    client.ok("push", "--check")
    assert client.json("pull") == []


def test_a_push_whose_answer_is_lost_takes_its_release_for_its_own(
    pushed: Client, proxy: CuttingProxy
) -> None:
    write_folder(pushed.folder, SCRIPTS, edition=2)
    proxy.after = cutting(APPLY)

    output = pushed.fails(4, "push", "--yes")

    assert "look at what happened before you repeat a change" in output
    mend(proxy)
    assert len(pushed.json("releases")) == 2
    goes_on(pushed, edition=3)
    assert len(pushed.json("releases")) == 3


def test_a_push_that_is_cut_before_it_is_applied_changes_nothing(
    pushed: Client, proxy: CuttingProxy
) -> None:
    write_folder(pushed.folder, SCRIPTS, edition=2)
    proxy.before = cutting(APPLY)

    pushed.fails(4, "push", "--yes")

    mend(proxy)
    assert len(pushed.json("releases")) == 1
    assert scripts_that_differ(pushed) == SCRIPTS
    goes_on(pushed, edition=3)


def test_a_push_that_is_cut_between_its_sources_changes_nothing(
    pushed: Client, proxy: CuttingProxy
) -> None:
    write_folder(pushed.folder, SCRIPTS, edition=2)
    # More than one request takes.
    large = [
        pushed.write(f"libraries/large-{number}.lua", f"-- {60_000 * 'x'}\nreturn {number}\n")
        for number in range(20)
    ]
    sent: list[bytes] = []

    def cut_the_second(body: bytes) -> None:
        if b"keepBlobs" in body:
            sent.append(body)
            if len(sent) == 2:
                raise Cut

    proxy.before = cut_the_second

    pushed.fails(4, "push", "--yes")

    mend(proxy)
    assert len(sent) == 2
    assert len(pushed.json("releases")) == 1
    for file in large:
        file.unlink()
    goes_on(pushed, edition=3)


def test_a_colleagues_release_after_a_lost_answer_is_told(
    pushed: Client, proxy: CuttingProxy, other_client: Client
) -> None:
    write_folder(pushed.folder, SCRIPTS, edition=2)
    proxy.after = cutting(APPLY)
    pushed.fails(4, "push", "--yes")
    mend(proxy)
    other_client.ok("init")
    other_client.ok("pull")
    other_client.write("scripts/sum-1.lua", "return 'theirs'\n")
    other_client.ok("push", "--yes", "--note", "theirs")
    write_folder(pushed.folder, SCRIPTS, edition=3)

    output = pushed.fails(1, "push", "--yes")

    assert "Release 3 “theirs” by cli" in output
    assert "Update Script sum-1" in output
    assert len(pushed.json("releases")) == 3


def test_of_two_pushes_at_once_one_is_told_what_the_other_released(
    pushed: Client, proxy: CuttingProxy, other_client: Client
) -> None:
    other_client.ok("init")
    other_client.ok("pull")
    other_client.write("scripts/sum-1.lua", "return 'theirs'\n")
    write_folder(pushed.folder, SCRIPTS, edition=2)

    def push_in_between(body: bytes) -> None:
        if APPLY in body:
            # A process of its own: `run` is busy with the push that waits for this.
            process = other_client.start("push", "--yes", "--note", "theirs")
            process.communicate(timeout=60)

    proxy.before = push_in_between

    output = pushed.fails(1, "push", "--yes")

    mend(proxy)
    assert "This push changed nothing." in output
    assert "Release 2 “theirs” by cli" in output
    assert "Update Script sum-1" in output
    assert "moonhook pull" in output
    assert len(pushed.json("releases")) == 2


def test_a_killed_push_leaves_what_is_live_whole(pushed: Client, proxy: CuttingProxy) -> None:
    write_folder(pushed.folder, SCRIPTS, edition=2)
    started: list[subprocess.Popen[str]] = []

    def kill(body: bytes) -> None:
        if APPLY in body:
            started[0].kill()

    proxy.after = kill
    started.append(pushed.start("push", "--yes", stdout=subprocess.DEVNULL))
    started[0].wait(timeout=60)

    mend(proxy)
    assert started[0].returncode == -9
    assert scripts_that_differ(pushed) == 0
    goes_on(pushed, edition=3)


def test_a_server_that_is_killed_during_a_push_has_all_of_it_or_nothing(
    pushed: Client, proxy: CuttingProxy, server: Server
) -> None:
    cut_by_the_server(pushed, proxy, server, seconds=0.02, edition=2)

    goes_on(pushed, edition=3)


def cut_by_the_server(
    client: Client, proxy: CuttingProxy, server: Server, *, seconds: float, edition: int
) -> None:
    """Kills the server so long after it got the plan to apply, and starts it again."""
    write_folder(client.folder, SCRIPTS, edition)
    known = len(client.json("releases"))
    killers: list[threading.Thread] = []

    def kill_soon(body: bytes) -> None:
        if APPLY in body:
            killers.append(threading.Timer(seconds, server.kill))
            killers[0].start()

    proxy.before = kill_soon
    try:
        client.run("push", "--yes")
    finally:
        mend(proxy)
        for killer in killers:
            killer.join()
            server.start()
    assert len(killers) == 1
    whole = {known: SCRIPTS, known + 1: 0}
    assert scripts_that_differ(client) == whole[len(client.json("releases"))]


@pytest.mark.slow
def test_pushes_killed_at_any_moment_leave_what_is_live_whole(pushed: Client) -> None:
    chosen = random.Random(36)
    began = time.monotonic()
    pushed.ok("push", "--check")
    longest = 2 * (time.monotonic() - began)
    for edition in range(2, ROUNDS + 2):
        write_folder(pushed.folder, SCRIPTS, edition)
        known = len(pushed.json("releases"))
        process = pushed.start("push", "--yes", stdout=subprocess.DEVNULL)
        try:
            process.wait(chosen.uniform(0, longest))
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        whole = {known: SCRIPTS, known + 1: 0}
        assert scripts_that_differ(pushed) == whole[len(pushed.json("releases"))]
    goes_on(pushed, edition=ROUNDS + 2)


@pytest.mark.slow
def test_servers_killed_at_any_moment_have_all_of_a_push_or_nothing(
    pushed: Client, proxy: CuttingProxy, server: Server
) -> None:
    chosen = random.Random(36)
    for edition in range(2, 12):
        seconds = chosen.uniform(0, 0.3)
        cut_by_the_server(pushed, proxy, server, seconds=seconds, edition=edition)
    goes_on(pushed, edition=12)
