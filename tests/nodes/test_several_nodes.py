"""Nodes share everything except warm sandboxes: a change on one applies to all immediately."""

import json
import re
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import psycopg
import pytest

from tests.eventually import eventually
from tests.node import Answer, Node, Worker, call_hook, new_hook
from tests.servers import MailServer
from tests.sessions import call, graphql, open_session
from tests.size import sized

pytestmark = pytest.mark.slow

CHECK = """mutation($email: String!, $pin: String!, $device: String!) {
    checkPinCode(email: $email, pin: $pin, device: $device) { result } }"""
SEND = "mutation($email: String!) { sendPinCode(email: $email, sendVia: Email) }"
EVALUATED = """SELECT count(*) FROM accounts_authevent
    WHERE email = %s AND reason = 'wrong-or-expired'"""
HOOK_CALLS = sized(small=300, full=1_000)


@pytest.fixture(scope="module")
def token(nodes: list[Node], organisation_id: str) -> str:
    return str(open_session(nodes[0], **new_key(nodes[0], organisation_id))["token"])


def new_key(node: Node, organisation_id: str) -> dict[str, str]:
    """The body of POST /session with a new key."""
    arguments = ("--organisation", organisation_id, "--name", "k", "--json")
    key = json.loads(node.manage("create_api_key", *arguments))
    return {"credential": "ApiKey", "uid": key["key"], "password": key["secret"], "email": ""}


def statuses_of(nodes: list[Node], token: str) -> list[int]:
    """Of GET /session on each node."""
    bearer = {"Authorization": f"Bearer {token}"}
    return [call("GET", f"{node.url}/session", None, bearer)[0] for node in nodes]


def user_graphql(node: Node, query: str, **variables: str) -> Any:
    return graphql(f"{node.url}/user/graphql", query, **variables)


def admin_graphql(node: Node, query: str, token: str, **variables: str) -> Any:
    return graphql(f"{node.url}/admin/graphql", query, token, **variables)


def new_code(nodes: list[Node], mail_server: MailServer, token: str, email: str) -> str:
    """Asked for on one node, made and sent by the worker."""
    admin_graphql(
        nodes[0], "mutation($e: String!) { createUser(email: $e) { id } }", token, e=email
    )
    user_graphql(nodes[1], SEND, email=email)
    eventually(lambda: [mail for mail in mail_server.messages if mail["To"] == email])
    [mail] = [mail for mail in mail_server.messages if mail["To"] == email]
    return str(re.findall(r"\b\d{6}\b", mail.get_content())[0])


def check_on_all(
    nodes: list[Node], email: str, pins: list[str], device: str | None = None
) -> list[bool]:
    """At once, one node after the other; from as many devices, unless one is given."""
    barrier = threading.Barrier(len(pins))

    def check(node: Node, pin: str, number: int) -> bool:
        variables = {"email": email, "pin": pin, "device": device or str(uuid.uuid4())}
        body = json.dumps({"query": CHECK, "variables": variables}).encode()
        # From addresses of their own: the limit of one is not what is asked here.
        client = {"Content-Type": "application/json", "X-Forwarded-For": f"203.0.113.{number}"}
        barrier.wait(timeout=60)
        _, content, _ = call("POST", f"{node.url}/user/graphql", body, client)
        return bool(json.loads(content)["data"]["checkPinCode"]["result"])

    with ThreadPoolExecutor(len(pins)) as executor:
        return list(executor.map(check, cycle(nodes), pins, range(len(pins))))


def count(database_url: str, query: str, *values: object) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute(query, values).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return int(row[0])


def test_a_session_is_valid_on_all_nodes_until_one_ends_it(
    nodes: list[Node], organisation_id: str
) -> None:
    session = open_session(nodes[0], **new_key(nodes[0], organisation_id))
    before = statuses_of(nodes, session["token"])
    bearer = {"Authorization": f"Bearer {session['token']}"}
    ended, _, _ = call("DELETE", f"{nodes[1].url}/session", None, bearer)

    assert before == [200, 200, 200]
    assert ended == 204
    assert statuses_of(nodes, session["token"]) == [401, 401, 401]


def test_a_key_revoked_on_one_node_and_its_sessions_are_refused_by_all(
    nodes: list[Node], organisation_id: str, token: str
) -> None:
    login = new_key(nodes[0], organisation_id)
    sessions = [open_session(node, **login)["token"] for node in nodes]
    keys = admin_graphql(nodes[0], "{ apiKeys { nodes { id key } } }", token)["apiKeys"]["nodes"]
    [key_id] = [key["id"] for key in keys if key["key"] == login["uid"]]
    before = statuses_of(nodes, sessions[0])
    revoke = "mutation($id: ID!) { revokeApiKey(id: $id) { id } }"
    admin_graphql(nodes[2], revoke, token, id=key_id)

    headers = {"Content-Type": "application/json"}
    body = json.dumps(login).encode()
    logins = [call("POST", f"{node.url}/session", body, headers)[0] for node in nodes]
    assert before == [200, 200, 200]
    assert [statuses_of(nodes, session) for session in sessions] == [[401, 401, 401]] * 3
    assert logins == [401, 401, 401]


def test_a_script_saved_on_one_node_runs_on_all_at_the_next_call(
    nodes: list[Node], token: str
) -> None:
    script, hook = new_hook(nodes[0], token, "return 'version 0'")
    update = "mutation($id: ID!, $s: String!) { updateScript(id: $id, source: $s) { id } }"
    replies = []
    for number in range(1, 7):
        source = f"return 'version {number}'"
        admin_graphql(nodes[number % 3], update, token, id=script, s=source)
        replies.append([answer.body for node in nodes if (answer := call_hook(node, hook))])

    assert replies == [[f"version {number}".encode()] * 3 for number in range(1, 7)]


def test_of_sixty_guesses_of_a_device_at_three_nodes_exactly_five_are_evaluated(
    nodes: list[Node], worker: Worker, mail_server: MailServer, token: str, database_url: str
) -> None:
    email = f"{uuid.uuid4()}@example.com"
    pin = new_code(nodes, mail_server, token, email)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    device = str(uuid.uuid4())
    results = check_on_all(nodes, email, [wrong] * 60, device)

    assert results == [False] * 60
    assert count(database_url, EVALUATED, email) == 5
    assert check_on_all(nodes, email, [pin], device) == [False]
    assert check_on_all(nodes, email, [pin]) == [True]


def test_of_sixty_guesses_of_strangers_at_three_nodes_exactly_twenty_are_evaluated(
    nodes: list[Node], worker: Worker, mail_server: MailServer, token: str, database_url: str
) -> None:
    email = f"{uuid.uuid4()}@example.com"
    pin = new_code(nodes, mail_server, token, email)
    wrong = f"{(int(pin) + 1) % 10**6:06d}"
    results = check_on_all(nodes, email, [wrong] * 60)

    assert results == [False] * 60
    assert count(database_url, EVALUATED, email) == 20
    assert check_on_all(nodes, email, [pin]) == [False]


def test_a_code_is_redeemed_on_one_node_only(
    nodes: list[Node], worker: Worker, mail_server: MailServer, token: str
) -> None:
    email = f"{uuid.uuid4()}@example.com"
    pin = new_code(nodes, mail_server, token, email)

    assert check_on_all(nodes, email, [pin] * 15).count(True) == 1


def test_a_limit_counts_attempts_on_all_nodes(nodes: list[Node]) -> None:
    email = f"{uuid.uuid4()}@example.com"
    body = json.dumps({"query": SEND, "variables": {"email": email}}).encode()
    headers = {"Content-Type": "application/json"}
    with ThreadPoolExecutor(9) as executor:
        answers = list(
            executor.map(
                lambda node: call("POST", f"{node.url}/user/graphql", body, headers), nodes * 3
            )
        )

    documents = [json.loads(content) for _, content, _ in answers]
    codes = Counter(
        document["errors"][0]["extensions"]["code"] if "errors" in document else "sent"
        for document in documents
    )
    assert codes == {"sent": 1, "RATE_LIMITED": 8}


def test_a_killed_node_loses_no_answered_run(
    nodes: list[Node], token: str, database_url: str
) -> None:
    script, hook = new_hook(nodes[0], token, "return params.get('body')")
    victim = nodes[2]
    retried = threading.Semaphore(0)
    answered = threading.Semaphore(0)

    def call_until_answered(number: int) -> tuple[int, Answer]:
        for node in [nodes[number % 3], *nodes[:2] * 20]:
            answer = call_hook(node, hook, str(number).encode())
            if answer is not None and answer.status == 200:
                answered.release()
                return number, answer
            retried.release()
            time.sleep(0.05)
        raise AssertionError(f"call {number} was never answered")

    def kill_in_the_middle() -> None:
        for _ in range(HOOK_CALLS // 3):
            assert answered.acquire(timeout=120)
        victim.kill()

    with ThreadPoolExecutor(9) as executor:
        killer = executor.submit(kill_in_the_middle)
        answers = list(executor.map(call_until_answered, range(HOOK_CALLS)))
        killer.result()
    victim.start()
    victim.wait_until_ready()

    assert retried.acquire(blocking=False)
    assert [answer.body for number, answer in answers] == [
        str(number).encode() for number, _ in answers
    ]
    told = {answer.run_id for _, answer in answers}
    assert len(told) == HOOK_CALLS
    with psycopg.connect(database_url) as connection:
        query = "SELECT id::text FROM scripts_engine_run WHERE script_id = %s"
        recorded = [row[0] for row in connection.execute(query, [script])]
    assert told <= set(recorded)
    # Beyond them only those whose answer died with the node.
    assert len(recorded) - HOOK_CALLS <= 12
    after = call_hook(victim, hook, b"back")
    assert after is not None
    assert after.body == b"back"
