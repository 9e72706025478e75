"""Deliveries, calls a minute and runs at once are counted over all nodes, and survive kill -9."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice

import psycopg
import pytest

from tests.eventually import eventually
from tests.held_server import HeldServer
from tests.node import LONGEST_RUN_SECONDS, Answer, Node, call_hook, new_hook
from tests.sessions import open_session

pytestmark = pytest.mark.slow

COUNT = 'return store.increment("n")'


@pytest.fixture(scope="module")
def token(nodes: list[Node], organisation_id: str) -> str:
    arguments = ("--organisation", organisation_id, "--name", "k", "--json")
    key = json.loads(nodes[0].manage("create_api_key", *arguments))
    login = {"credential": "ApiKey", "uid": key["key"], "password": key["secret"], "email": ""}
    return str(open_session(nodes[0], **login)["token"])


def set_rule(database_url: str, script: str, assignment: str) -> None:
    """Of the script's only hook."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            f"UPDATE hooks_hook SET {assignment} WHERE script_id = %s".encode(), [script]
        )


END_DELIVERY = """UPDATE hooks_idempotencykey new SET lease_ends_at = now()
    FROM hooks_idempotencykey old JOIN hooks_hook ON hooks_hook.id = old.hook_id
    WHERE old.digest = new.digest AND hooks_hook.script_id = %s
    RETURNING extract(epoch FROM old.lease_ends_at - now())"""
END_RUN = """UPDATE jobs_runlease new SET ends_at = now() FROM jobs_runlease old
    WHERE old.id = new.id AND old.script_id = %s
    RETURNING extract(epoch FROM old.ends_at - now())"""


def end_lease(database_url: str, statement: str, script: str) -> float:
    """Ends the script's only lease, which would have lasted for so many seconds."""
    with psycopg.connect(database_url) as connection:
        [(seconds,)] = connection.execute(statement.encode(), [script]).fetchall()
    return float(seconds)


def runs_of(database_url: str, script: str) -> list[str]:
    with psycopg.connect(database_url) as connection:
        query = b"SELECT id::text FROM scripts_engine_run WHERE script_id = %s"
        return [row[0] for row in connection.execute(query, [script])]


@contextmanager
def called_at_once(
    nodes: list[Node], hook: str, number: int
) -> Iterator["list[Future[Answer | None]]"]:
    """Meanwhile the nodes are called so many times, by turns."""
    with ThreadPoolExecutor(number) as executor:
        yield [executor.submit(call_hook, node, hook) for node in islice(cycle(nodes), number)]


def call_all_at_once(nodes: list[Node], hook: str, number: int) -> list[Answer | None]:
    with called_at_once(nodes, hook, number) as answers:
        return [each.result() for each in answers]


def call_and_kill(victim: Node, hook: str, held: HeldServer) -> Answer | None:
    """What the caller of a node gets that is killed during the run."""
    with called_at_once([victim], hook, 1) as [answer]:
        held.wait_until_begun()
        victim.kill()
        return answer.result()


def test_of_a_hundred_equal_calls_at_three_nodes_one_runs(
    nodes: list[Node], token: str, database_url: str
) -> None:
    with HeldServer().running() as held:
        script, hook = new_hook(nodes[0], token, held.before(COUNT))
        set_rule(database_url, script, "idempotency = 'body-hash'")
        with called_at_once(nodes, hook, 100) as calls:
            # Two may wait for the reply.
            eventually(lambda: sum(each.done() for each in calls) >= 97)
            held.may_go_on.set()
            answers = [each.result() for each in calls]
    later = call_all_at_once(nodes, hook, 3)

    [run] = runs_of(database_url, script)
    given = Counter((answer.status, answer.run_id) for answer in answers if answer)
    assert set(given) == {(200, run), (503, None)}
    assert {answer.body for answer in later if answer} == {
        answer.body for answer in answers if answer and answer.status == 200
    }
    assert [answer.run_id for answer in later if answer] == [run] * 3


def test_a_delivery_lost_with_its_node_runs_again_when_its_lease_has_ended(
    nodes: list[Node], token: str, database_url: str
) -> None:
    with HeldServer().running() as held:
        script, hook = new_hook(nodes[0], token, held.before(COUNT))
        set_rule(database_url, script, "idempotency = 'body-hash'")
        lost = call_and_kill(nodes[2], hook, held)
        held.may_go_on.set()
        meanwhile = call_hook(nodes[0], hook)
        seconds = end_lease(database_url, END_DELIVERY, script)
        first = call_hook(nodes[1], hook)
    nodes[2].start()
    nodes[2].wait_until_ready()
    again = call_hook(nodes[2], hook)

    assert lost is None
    assert meanwhile is not None
    assert meanwhile.status == 503
    # The time of the script, and the margin for all else.
    assert seconds < LONGEST_RUN_SECONDS + 17
    [run] = runs_of(database_url, script)
    assert first is not None
    assert again is not None
    assert (first.status, first.run_id) == (again.status, again.run_id) == (200, run)


def test_calls_a_minute_are_counted_on_all_nodes(
    nodes: list[Node], token: str, database_url: str
) -> None:
    script, hook = new_hook(nodes[0], token, COUNT)
    set_rule(database_url, script, "calls_per_minute = 1, burst = 5")
    answers = call_all_at_once(nodes, hook, 30)

    assert Counter(answer.status for answer in answers if answer) == {200: 5, 429: 25}
    assert len(runs_of(database_url, script)) == 5


def test_runs_at_once_are_counted_on_all_nodes_and_a_killed_one_ends(
    nodes: list[Node], token: str, database_url: str
) -> None:
    with HeldServer().running() as held:
        script, hook = new_hook(nodes[0], token, held.before(COUNT))
        set_rule(database_url, script, "max_concurrent_runs = 2")
        with called_at_once(nodes, hook, 12) as calls:
            eventually(lambda: sum(each.done() for each in calls) == 10)
            held.wait_until_begun(2)
            held.may_go_on.set()
            answers = [each.result() for each in calls]
        set_rule(database_url, script, "max_concurrent_runs = 1")
        held.may_go_on.clear()
        lost = call_and_kill(nodes[2], hook, held)
        held.may_go_on.set()
        meanwhile = call_hook(nodes[0], hook)
        seconds = end_lease(database_url, END_RUN, script)
        after = call_hook(nodes[1], hook)
    nodes[2].start()
    nodes[2].wait_until_ready()

    assert Counter(answer.status for answer in answers if answer) == {200: 2, 503: 10}
    assert lost is None
    assert meanwhile is not None
    assert meanwhile.status == 503
    assert seconds < LONGEST_RUN_SECONDS + 15
    assert after is not None
    assert after.status == 200
