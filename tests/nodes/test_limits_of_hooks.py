"""Deliveries, calls a minute and runs at once are counted over all nodes, and survive kill -9."""

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import psycopg
import pytest

from tests.eventually import eventually
from tests.node import Answer, Node, call_hook, new_hook
from tests.sessions import open_session

pytestmark = pytest.mark.slow

COUNT = 'return store.increment("n")'
SLOW_COUNT = f"local now = os.time() while os.time() < now + 3 do end {COUNT}"


@pytest.fixture(scope="module")
def token(nodes: list[Node], organisation_id: str) -> str:
    arguments = ("--organisation", organisation_id, "--name", "k", "--json")
    key = json.loads(nodes[0].manage("create_api_key", *arguments))
    login = {"credential": "ApiKey", "uid": key["key"], "password": key["secret"], "email": ""}
    return str(open_session(nodes[0], **login)["token"])


def set_rule(database_url: str, script: str, assignment: str) -> None:
    """Of the script's only hook, and how long it may run."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            f"UPDATE scripts_engine_hook SET {assignment} WHERE script_id = %s".encode(), [script]
        )
        connection.execute(
            b"UPDATE scripts_engine_script SET timeout_seconds = 5 WHERE id = %s", [script]
        )


def runs_of(database_url: str, script: str) -> list[str]:
    with psycopg.connect(database_url) as connection:
        query = b"SELECT id::text FROM scripts_engine_run WHERE script_id = %s"
        return [row[0] for row in connection.execute(query, [script])]


def call_all_at_once(nodes: list[Node], hook: str, number: int) -> list[Answer | None]:
    with ThreadPoolExecutor(number) as executor:
        return list(executor.map(lambda node: call_hook(node, hook), islice(cycle(nodes), number)))


def call_and_kill(victim: Node, hook: str, after_seconds: float) -> Answer | None:
    """What the caller of a node gets that is killed meanwhile."""
    with ThreadPoolExecutor(1) as executor:
        answer = executor.submit(call_hook, victim, hook)
        time.sleep(after_seconds)
        victim.kill()
        return answer.result()


def seconds_until_answered(node: Node, hook: str) -> float:
    began = time.monotonic()

    def is_answered() -> bool:
        answer = call_hook(node, hook)
        return answer is not None and answer.status == 200

    eventually(is_answered, seconds=60)
    return time.monotonic() - began


def test_of_a_hundred_equal_calls_at_three_nodes_one_runs(
    nodes: list[Node], token: str, database_url: str
) -> None:
    script, hook = new_hook(nodes[0], token, SLOW_COUNT)
    set_rule(database_url, script, "idempotency = 'body-hash'")
    answers = call_all_at_once(nodes, hook, 100)
    later = call_all_at_once(nodes, hook, 3)

    [run] = runs_of(database_url, script)
    given = Counter((answer.status, answer.run_id) for answer in answers if answer)
    assert set(given) == {(200, run), (503, None)}
    assert given[503, None] > 50
    assert {answer.body for answer in later if answer} == {
        answer.body for answer in answers if answer and answer.status == 200
    }
    assert [answer.run_id for answer in later if answer] == [run] * 3


def test_a_delivery_lost_with_its_node_runs_again_when_its_lease_has_ended(
    nodes: list[Node], token: str, database_url: str
) -> None:
    script, hook = new_hook(nodes[0], token, SLOW_COUNT)
    set_rule(database_url, script, "idempotency = 'body-hash'")
    lost = call_and_kill(nodes[2], hook, after_seconds=1)
    meanwhile = call_hook(nodes[0], hook)
    seconds = seconds_until_answered(nodes[1], hook)
    nodes[2].start()
    nodes[2].wait_until_ready()
    again = call_hook(nodes[2], hook)

    assert lost is None
    assert meanwhile is not None
    assert meanwhile.status == 503
    # The lease: 5 s for the script and 17 more, of which about 6 s passed before.
    assert 8 < seconds < 35
    [run] = runs_of(database_url, script)
    assert again is not None
    assert (again.status, again.run_id) == (200, run)


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
    script, hook = new_hook(nodes[0], token, SLOW_COUNT)
    set_rule(database_url, script, "max_concurrent_runs = 2")
    answers = call_all_at_once(nodes, hook, 12)
    set_rule(database_url, script, "max_concurrent_runs = 1")
    lost = call_and_kill(nodes[2], hook, after_seconds=1)
    meanwhile = call_hook(nodes[0], hook)
    seconds = seconds_until_answered(nodes[1], hook)
    nodes[2].start()
    nodes[2].wait_until_ready()

    assert Counter(answer.status for answer in answers if answer) == {200: 2, 503: 10}
    assert lost is None
    assert meanwhile is not None
    assert meanwhile.status == 503
    assert 10 < seconds < 35
