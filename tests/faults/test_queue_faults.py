"""Five faults of a queue on PostgreSQL: nothing is lost, all runs end, by themselves."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.faults.queue_faults import FAULTS, Fault
from tests.faults.queue_nodes import Database, accepting_hook, check_runs, queue_nodes
from tests.life_cycle.load import Load
from tests.private_servers import PrivatePostgres
from tests.size import IS_FULL

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_FULL, reason="takes minutes: TEST_SIZE=full"),
]

SECONDS = 20.0
# For leases that must end, pauses before restarts, and delays of attempts.
PATIENCE_SECONDS = 300


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_all_accepted_runs_end_after_a_fault(
    fault: Fault, postgres: PrivatePostgres, tmp_path: Path
) -> None:
    database = Database(postgres.url)
    with queue_nodes(tmp_path, 2, postgres.url, DATABASE_POOL_SIZE="12") as nodes:
        hook = accepting_hook(nodes[0])
        loads = [Load(node.url + hook, pause_seconds=0.2) for node in nodes]
        with ExitStack() as running:
            for load in loads:
                running.enter_context(load.running(callers=2))
            eventually(lambda: all(load.runs for load in loads))
            fault(postgres, nodes, SECONDS)
            during = [len(load.runs) for load in loads]
            eventually(lambda: all(len(a.runs) > b for a, b in zip(loads, during, strict=True)))
        eventually(database.is_queue_empty, seconds=PATIENCE_SECONDS)
        outputs = [node.output for node in nodes]
    statuses = check_runs(loads, database)

    assert statuses["succeeded"] >= sum(len(load.runs) for load in loads)
    assert [output for output in outputs if "Traceback" in output] == []
