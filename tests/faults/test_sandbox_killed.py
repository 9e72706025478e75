"""Killing sandbox processes at any moment: calls are answered, and no slot is lost."""

import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.node import Answer, Node, call_hook, new_hook
from tests.process_tree import command_of, family_of, is_alive, parent_of
from tests.sessions import machine_token
from tests.size import sized

pytestmark = pytest.mark.slow

CALLS = sized(small=100, full=2_000)
SHORT = "local n = 0 for i = 1, 200000 do n = n + i end return 'done'"
SLOW = "local ends = os.time() + 2 while os.time() < ends do end return 'slow'"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """With four sandboxes, of which an organisation may have two."""
    directory = Path(tmp_path_factory.mktemp("node"))
    server = Node(directory, DATABASE_URL=f"sqlite:///{directory}/moonhook.sqlite3")
    server.manage("migrate", "-v0")
    with server.running():
        yield server


@pytest.fixture(scope="module")
def tokens(node: Node) -> list[str]:
    return [machine_token(node, name) for name in ("Acme", "Globex")]


def sandboxes_of(node: Node) -> list[int]:
    """The fork server first, then its children."""
    family = family_of(node.process.pid)
    return [pid for pid in family if "scripts_engine.sandbox.child.fork_server" in command_of(pid)]


def fork_servers_of(node: Node) -> list[int]:
    sandboxes = sandboxes_of(node)
    return [pid for pid in sandboxes if parent_of(pid) not in (0, *sandboxes)]


def kill_one_child(node: Node) -> None:
    children = sandboxes_of(node)[1:]
    if children:
        victim = random.choice(children)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return
        # On a busy machine it lives on for a moment, and would take what comes after the test.
        eventually(lambda: not is_alive(victim))


def code_of(answer: Answer | None) -> str:
    assert answer is not None
    return "done" if answer.body == b"done" else str(json.loads(answer.body)["code"])


def assert_every_slot_works(node: Node, tokens: list[str]) -> None:
    hooks = [new_hook(node, token, SLOW)[1] for token in tokens * 2]
    with ThreadPoolExecutor(4) as executor:
        answers = list(executor.map(lambda hook: call_hook(node, hook), hooks))
    assert [answer and answer.body for answer in answers] == [b"slow"] * 4


def test_only_calls_whose_sandbox_is_killed_get_an_error(node: Node, tokens: list[str]) -> None:
    _, hook = new_hook(node, tokens[0], SHORT)
    is_over = threading.Event()
    answered = threading.Semaphore(0)

    def call_once(number: int) -> str:
        code = code_of(call_hook(node, hook))
        answered.release()
        return code

    def kill_on() -> None:
        """One after every fourth answer, so that most calls succeed however slow they are."""
        while not is_over.is_set():
            kill_one_child(node)
            wait_for_answers(4)

    def wait_for_answers(count: int) -> None:
        while count and not is_over.is_set():
            count -= answered.acquire(timeout=0.05)

    with ThreadPoolExecutor(5) as executor:
        killer = executor.submit(kill_on)
        try:
            codes = Counter(executor.map(call_once, range(CALLS)))
        finally:
            is_over.set()
        killer.result()

    assert sum(codes.values()) == CALLS
    assert set(codes) <= {"done", "script-failed", "unavailable", "busy"}
    assert codes["done"] > CALLS / 4
    assert codes["done"] < CALLS
    assert "Traceback" not in node.output
    assert_every_slot_works(node, tokens)


def test_a_killed_fork_server_is_replaced(node: Node, tokens: list[str]) -> None:
    _, hook = new_hook(node, tokens[0], SHORT)
    assert code_of(call_hook(node, hook)) == "done"
    [first] = fork_servers_of(node)
    os.kill(first, signal.SIGKILL)
    # A child that has not noticed yet may still serve a call.
    eventually(lambda: first not in fork_servers_of(node))
    eventually(lambda: code_of(call_hook(node, hook)) == "done" and fork_servers_of(node))

    assert "Traceback" not in node.output
    assert_every_slot_works(node, tokens)
