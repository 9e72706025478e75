"""A primary with a synchronous standby fails over, under load: two nodes, two runners.

What was answered is there, nothing runs twice, and both nodes serve again by themselves. All four
ways to lose a primary with TEST_SIZE=full, one otherwise.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.faults.queue_nodes import Database, accepting_hook, check_runs, queue_nodes
from tests.life_cycle.hooks import hook_path_of
from tests.life_cycle.load import Load
from tests.moonhook_server import MoonhookServer
from tests.private_servers import PrivatePostgres, private_pair
from tests.size import IS_FULL, sized

pytestmark = pytest.mark.slow

# How long the load goes on before the fault, and until the standby is promoted.
SECONDS = sized(small=2.0, full=5.0)
# For leases that must end, and delays of attempts.
PATIENCE_SECONDS = 300
ANSWER_ONLY = 'return "done"'

Pair = tuple[PrivatePostgres, PrivatePostgres]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with private_pair() as pair:
        yield pair


def fail_over(
    primary: PrivatePostgres, standby: PrivatePostgres, fault: Callable[[], None]
) -> None:
    fault()
    time.sleep(SECONDS)
    standby.promote()


def kill(primary: PrivatePostgres, standby: PrivatePostgres) -> None:
    fail_over(primary, standby, primary.kill)


def demote(primary: PrivatePostgres, standby: PrivatePostgres) -> None:
    """It still answers, and takes no writes."""
    fail_over(primary, standby, primary.become_read_only)


def freeze(primary: PrivatePostgres, standby: PrivatePostgres) -> None:
    fail_over(primary, standby, primary.freeze)


def switch_over(primary: PrivatePostgres, standby: PrivatePostgres) -> None:
    """The two change places."""
    primary.stop_in_order()
    standby.promote()
    primary.follow(standby)
    standby.wait_for_each_commit_of_standbys()


only_in_full_size = pytest.mark.skipif(not IS_FULL, reason="TEST_SIZE is not full")


class Callers:
    """Calls that wait for their script and calls that are queued, at each node."""

    def __init__(self, nodes: list[MoonhookServer]) -> None:
        waiting = hook_path_of(nodes[0], ANSWER_ONLY)
        # An attempt that times out on a busy machine would say nothing of the failover.
        queued = accepting_hook(nodes[0], timeout_seconds=15)
        self.waiting = [Load(node.url + waiting, pause_seconds=0.05) for node in nodes]
        self.queued = [Load(node.url + queued, pause_seconds=0.2) for node in nodes]
        self.all = self.waiting + self.queued

    def wait_until_all_are_answered(self) -> float:
        """Returns after how many seconds the last of them was."""
        began, before = time.monotonic(), [len(load.runs) for load in self.all]

        def are_answered() -> bool:
            now = [len(load.runs) for load in self.all]
            return all(later > earlier for earlier, later in zip(before, now, strict=True))

        eventually(are_answered)
        return time.monotonic() - began


@pytest.mark.parametrize(
    "lose",
    [
        kill,
        pytest.param(demote, marks=only_in_full_size),
        pytest.param(freeze, marks=only_in_full_size),
        pytest.param(switch_over, marks=only_in_full_size),
    ],
)
def test_nothing_that_was_answered_is_lost_with_the_primary(
    pair: Pair,
    lose: Callable[[PrivatePostgres, PrivatePostgres], None],
    tmp_path: Path,
) -> None:
    primary, standby = pair
    servers = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    url = f"postgres://postgres@{servers}/postgres"
    database = Database(standby.url)
    with queue_nodes(tmp_path, 2, url, DATABASE_POOL_SIZE="12") as nodes, ExitStack() as running:
        callers = Callers(nodes)
        for load in callers.all:
            running.enter_context(load.running(callers=2))
        time.sleep(SECONDS)
        lose(primary, standby)
        seconds = callers.wait_until_all_are_answered()
        callers.wait_until_all_are_answered()
        running.close()
        eventually(database.is_queue_empty, seconds=PATIENCE_SECONDS)
        outputs = [node.output for node in nodes]
    answered = [run.replace("-", "") for load in callers.waiting for run in load.runs]
    runs = database.runs()
    statuses = check_runs(callers.queued, database)
    # Recorded, not judged: pytest -rP shows it.
    print(f"{lose.__name__}: {len(answered)} answered, {dict(statuses)}, back in {seconds:.2f} s")  # noqa: T201

    assert len(set(answered)) == len(answered)
    assert set(answered) <= {run.run_id for run in runs}
    assert {status for load in callers.waiting for status in load.statuses} <= {200, 503}
    assert [failure for load in callers.all for failure in load.failures] == []
    assert [output for output in outputs if "Traceback" in output] == []
