"""Compares response times where they could reveal something, as distributions.

    .venv/bin/python benchmarks/enumeration.py [CALLS]

For existing and unknown accounts; for refused calls of hooks with and without a signing secret,
with one and with two, from a refused network and with a wrong token. Starts Moonhook without rate
limits, alternates between the two calls of each pair, and prints medians, 99th percentiles and the
Kolmogorov-Smirnov distance. Two equal distributions exceed the printed critical distance in 1 of
100 cases; a distance below it reveals nothing.
"""

import http.client
import json
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from accounts.credentials import SecretKind, generate_secret
from tests.moonhook_server import MoonhookServer
from tests.sessions import graphql, machine_token


class Caller:
    """A keep-alive connection that returns the duration of a POST in seconds."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)

    def post(self, path: str, document: object, **headers: str) -> float:
        body = json.dumps(document)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        started = time.perf_counter()
        self._connection.request("POST", path, body, {"Content-Type": "application/json"} | headers)
        self._connection.getresponse().read()
        return time.perf_counter() - started


def ks_distance(first: list[float], second: list[float]) -> float:
    """The largest difference between the two empirical distribution functions."""
    events = sorted([(value, 1) for value in first] + [(value, -1) for value in second])
    height = largest = 0
    for _, step in events:
        height += step
        largest = max(largest, abs(height))
    return largest / len(first)


def wrong_secret() -> str:
    """A well-formed secret with a valid checksum that belongs to nobody."""
    return generate_secret(SecretKind.API_KEY)


def pairs(moonhook: MoonhookServer, caller: Caller) -> dict[str, Callable[[bool], float]]:
    """The calls, each with an existing and an unknown account."""
    organisation = json.loads(moonhook.manage("create_organisation", "Acme", "--json"))["id"]
    key = json.loads(
        moonhook.manage("create_api_key", "--organisation", organisation, "--name", "x", "--json")
    )["key"]
    email = "alice@example.com"
    moonhook.manage("create_user", "--email", email, "--organisation", organisation)
    send = "mutation($e: String) { sendPinCode(email: $e, sendVia: Email) }"
    check = """mutation($e: String, $d: String) {
        checkPinCode(email: $e, pin: "000000", device: $d) { result } }"""

    def address(is_known: bool) -> str:
        return email if is_known else "nobody@example.com"

    def send_pin(is_known: bool) -> float:
        variables = {"e": address(is_known)}
        return caller.post("/user/graphql", {"query": send, "variables": variables})

    def check_pin(is_known: bool) -> float:
        variables = {"e": address(is_known), "d": str(uuid.uuid4())}
        return caller.post("/user/graphql", {"query": check, "variables": variables})

    def log_in(is_known: bool) -> float:
        uid = key if is_known else "mhk_000000000000"
        login = {"credential": "ApiKey", "uid": uid, "password": wrong_secret()}
        return caller.post("/session", login)

    return {"sendPinCode": send_pin, "checkPinCode": check_pin, "POST /session": log_in}


def refused_calls(moonhook: MoonhookServer, caller: Caller) -> dict[str, Callable[[bool], float]]:
    """Calls of hooks that are refused, each for two reasons that a caller must not tell apart."""
    token = machine_token(moonhook)

    def ask(query: str, **variables: object) -> Any:
        return graphql(f"{moonhook.url}/admin/graphql", query, token, **variables)

    script = ask('mutation {createScript(name: "x", source: "return 1") {id}}')["createScript"][
        "id"
    ]

    def path_of_hook(*secrets: str, networks: list[str] | None = None) -> str:
        made = "mutation($s: ID!) {createHook(script: $s) {hook {id url}}}"
        hook = ask(made, s=script)["createHook"]["hook"]
        ask('mutation($h: ID!) {setSender(hook: $h, sender: "github") {id}}', h=hook["id"])
        if networks is not None:
            limited = (
                "mutation($h: ID!, $n: [String!]) {updateHook(id: $h, allowedNetworks: $n) {id}}"
            )
            ask(limited, h=hook["id"], n=networks)
        for secret in secrets:
            given = "mutation($h: ID!, $v: String!) {setSigningSecret(hook: $h, value: $v) {id}}"
            ask(given, h=hook["id"], v=secret)
        return str(urlsplit(hook["url"]).path)

    one, two = path_of_hook("a secret"), path_of_hook("a secret", "another")
    none, elsewhere = path_of_hook(), path_of_hook("a secret", networks=["192.0.2.0/24"])
    wrong = f"{one.rpartition('/')[0]}/{generate_secret(SecretKind.CALL_TOKEN)}"

    def between(first: str, second: str) -> Callable[[bool], float]:
        def call(is_first: bool) -> float:
            signature = f"sha256={'0' * 64}"
            path = first if is_first else second
            return caller.post(path, {"some": "body"}, X_Hub_Signature_256=signature)

        return call

    return {
        "secret, none": between(one, none),
        "one secret, two": between(one, two),
        "network, token": between(elsewhere, wrong),
    }


def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        server = MoonhookServer(Path(directory), RATE_LIMITS="off")
        with server.running():
            caller = Caller(server.port)
            chance = 1.63 * (2 / calls) ** 0.5
            print(f"{calls} calls each; distance by chance (1 %): {chance:.3f}\n")
            print(f"{'':<16}{'first ms':>18}{'second ms':>18}{'KS distance':>14}")
            for name, call in (pairs(server, caller) | refused_calls(server, caller)).items():
                for warm_up in range(50):
                    call(warm_up % 2 == 0)
                known, unknown = [], []
                for _ in range(calls):
                    known.append(call(True) * 1000)
                    unknown.append(call(False) * 1000)
                columns = [
                    f"{median(times):.2f} / {quantiles(times, n=100)[98]:.2f}"
                    for times in (known, unknown)
                ]
                distance = ks_distance(known, unknown)
                print(f"{name:<16}{columns[0]:>18}{columns[1]:>18}{distance:>14.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
