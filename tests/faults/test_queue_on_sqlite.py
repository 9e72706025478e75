"""What happens to queued runs when a node's clock, disk or runner lets them down."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.faults.queue_nodes import Database, accepting_hook, queue_nodes, runner_of, runners
from tests.faults.test_disk_full import PAYLOAD, fill, small_disk
from tests.sessions import call

pytestmark = pytest.mark.slow

TWO_HOURS = 7200
OTHER_CLOCK = str(Path(__file__).parent / "other_clock")
# The first attempt takes longer than the runner has to stop.
SLOW_AT_FIRST = """
local seconds = params.get("attempt") == "1" and tonumber(params.get("body")) or 0
local ends = os.time() + seconds
while os.time() < ends do end
return "done"
"""


def has_stopped_without_lock(runner: int, database: Path) -> bool:
    """Stops the process; lets it go on where it would keep all others from writing."""
    os.kill(runner, signal.SIGSTOP)
    with closing(sqlite3.connect(database, timeout=1, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            os.kill(runner, signal.SIGCONT)
            return False
        connection.execute("ROLLBACK")
    return True


@pytest.mark.parametrize("seconds", [-TWO_HOURS, TWO_HOURS], ids=["back", "forward"])
def test_accepted_calls_run_although_the_clock_is_set(seconds: int, tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("0")
    database = Database(f"sqlite:///{tmp_path}/moonhook.sqlite3")
    environment = {"PYTHONPATH": OTHER_CLOCK, "OTHER_CLOCK": str(clock)}
    with queue_nodes(tmp_path, 1, database.url, **environment) as [node]:
        hook = node.url + accepting_hook(node)
        runner = runner_of(node)
        eventually(lambda: has_stopped_without_lock(runner, tmp_path / "moonhook.sqlite3"))
        before = [call("POST", hook)[0] for _ in range(3)]
        clock.write_text(str(seconds))
        os.kill(runner, signal.SIGCONT)
        after = [call("POST", hook)[0] for _ in range(3)]
        eventually(database.is_queue_empty)

    assert before + after == [202] * 6
    assert [run.status for run in database.runs() if run.status != "lost"] == ["succeeded"] * 6


def test_results_wait_for_room_on_the_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        database = Database(f"sqlite:///{disk}/moonhook.sqlite3")
        with queue_nodes(tmp_path, 1, database.url) as [node]:
            hook = node.url + accepting_hook(node, SLOW_AT_FIRST, timeout_seconds=5)
            accepted = call("POST", hook, b"2")[0]
            eventually(lambda: database.runs()[0].status == "running")
            ballast = fill(disk)
            refused = call("POST", hook, PAYLOAD)[0]
            eventually(lambda: "The queue waits for the database" in node.output)
            ballast.unlink()
            eventually(database.is_queue_empty)
            later = call("POST", hook, b"0")[0]
            eventually(database.is_queue_empty)
        runs = database.runs()

    assert (accepted, refused, later) == (202, 503, 202)
    assert [(run.status, run.attempt) for run in runs] == [("succeeded", 1)] * 2
    assert "Traceback" not in node.output


def test_a_stopping_runner_finishes_its_runs_and_leaves_the_rest(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/moonhook.sqlite3")
    with queue_nodes(tmp_path, 1, database.url) as [node]:
        hook = node.url + accepting_hook(node, SLOW_AT_FIRST, timeout_seconds=10)
        runner = runner_of(node)
        statuses = [call("POST", hook, seconds)[0] for seconds in (b"3", b"5")]
        eventually(lambda: {run.status for run in database.runs()} == {"running"})
        os.kill(runner, signal.SIGTERM)
        statuses += [call("POST", hook, seconds)[0] for seconds in (b"0", b"4")]
        # Its successor starts after its end.
        eventually(lambda: runners(node) not in ([], [runner]))
        eventually(lambda: [run.status for run in database.runs()].count("succeeded") == 3)
        status = node.stop()

    assert (statuses, status) == ([202] * 4, 0)
    assert [(run.status, run.attempt) for run in database.runs()] == [("succeeded", 1)] * 4
