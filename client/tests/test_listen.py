"""listen: the calls of a hook are repeated to a local program."""

import hmac
import json
import signal
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

import pytest
from conftest import Client
from local_program import LocalProgram, Received, local_program
from server import Server

SETTINGS = """[scripts.sum]
enabled = true

[hooks."sum/orders"]
enabled = true
allowPath = true
methods = ["POST", "PUT"]
"""
SUM = "return {header = params.header('X-Shop'), size = #params.get('body')}\n"


@pytest.fixture
def program() -> Iterator[LocalProgram]:
    with local_program() as running:
        yield running


@pytest.fixture
def pushed(logged_in: Client) -> Client:
    logged_in.ok("init")
    logged_in.write("moonhook.toml", SETTINGS)
    logged_in.write("scripts/sum.lua", SUM)
    logged_in.write("url", logged_in.json("push", "--yes")["issuedHooks"][0]["hook"]["url"])
    return logged_in


def call(client: Client, body: bytes = b"", address: str = "POST ", **headers: str) -> str:
    """The id of the run. The address is method and path."""
    method, path = address.split(" ")
    request = urllib.request.Request(client.read("url") + path, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(response.headers["Moonhook-Run-Id"])


class Listening:
    """A running `moonhook listen`. What it does before it listens has ended."""

    def __init__(self, client: Client, *arguments: str) -> None:
        self.process = client.start("listen", "sum/orders", *arguments)
        assert self.process.stdout is not None
        self._lines = self.process.stdout
        self.begun = []
        while not any("Repeating the calls" in line for line in self.begun):
            self.begun.append(self.line())

    def line(self) -> str:
        line = self._lines.readline()
        assert line, self.process.wait()
        return line.removesuffix("\n")

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def interrupt(self) -> str:
        """What it prints at the end."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[0]


@contextmanager
def listening(client: Client, url: str, *options: str) -> Iterator[Listening]:
    begun = Listening(client, "--forward", url, *options)
    try:
        yield begun
    finally:
        begun.process.kill()
        begun.process.communicate()


def is_signed(received: Received, secret: str) -> bool:
    key = b64decode(secret.removeprefix("whsec_"))
    signed = [received.headers[f"webhook-{name}"].encode() for name in ("id", "timestamp")]
    expected = b64encode(hmac.digest(key, b".".join([*signed, received.body]), "sha256")).decode()
    return hmac.compare_digest(received.headers["webhook-signature"], f"v1,{expected}")


def test_a_call_is_repeated_with_its_headers_and_both_replies_are_shown(
    pushed: Client, program: LocalProgram
) -> None:
    with listening(pushed, f"{program.url}/shop/") as begun:
        headers = {
            "X-Shop": "tea",
            "Content-Type": "application/json",
            "Authorization": "Basic eA==",
        }
        run_id = call(pushed, b'{"a": "\xc3\xa4"}', "PUT /new%20one?page=2", **headers)
        received = program.next()
        first, *replies = begun.lines(4)

    assert (received.method, received.path) == ("PUT", "/shop/new%20one?page=2")
    assert received.body == b'{"a": "\xc3\xa4"}'
    assert received.headers["x-shop"] == "tea"
    assert received.headers["content-type"] == "application/json"
    assert received.headers["moonhook-run-id"] == run_id
    assert received.headers["host"] == program.url.removeprefix("http://")
    assert "authorization" not in received.headers
    assert first.endswith(f"PUT /new one?page=2  run {run_id}")
    assert replies[0].startswith("  server  200 in ")
    assert '{"header":"tea"' in replies[0]
    assert replies[1].startswith("  local   200 in ")
    assert replies[1].endswith("  noted")
    assert replies[2] == "  without Authorization"


def test_a_repeated_call_is_signed_by_the_secret_of_the_session(
    pushed: Client, program: LocalProgram
) -> None:
    with listening(pushed, program.url, "--print-secret") as begun:
        theirs = {"Webhook-Id": "theirs", "Webhook-Signature": "v1,theirs"}
        call(pushed, b"\xff\x00 bytes", **theirs)
        received = program.next()

    secret = begun.begun[0].removeprefix("Signing secret of this session: ")
    assert received.body == b"\xff\x00 bytes"
    assert received.headers["webhook-id"] == received.headers["moonhook-run-id"]
    assert is_signed(received, secret)


def test_the_secret_is_printed_only_when_asked_for(pushed: Client, program: LocalProgram) -> None:
    with listening(pushed, program.url, "--debug") as begun:
        call(pushed)
        program.next()
        printed = "\n".join(begun.begun) + begun.interrupt()

    assert "whsec_" not in printed
    assert begun.process.returncode == 0
    assert printed.endswith("Stopped.\n")


def test_replays_and_test_events_are_repeated_and_earlier_calls_are_not(
    pushed: Client, program: LocalProgram
) -> None:
    earlier = call(pushed, b"earlier")
    with listening(pushed, program.url, "--json"):
        pushed.ok("runs", "replay", earlier)
        replayed = program.next()
        pushed.ok("hooks", "test", "sum/orders")
        tested = program.next()
        with pytest.raises(Empty):
            program.received.get_nowait()

    assert replayed.body == b"earlier"
    assert json.loads(tested.body)["type"] == "test"


def test_a_local_program_that_is_away_does_not_end_it(
    pushed: Client, program: LocalProgram
) -> None:
    with listening(pushed, "http://127.0.0.1:9") as begun:
        call(pushed)
        away = begun.lines(3)[2]
        call(pushed)
        again = begun.lines(3)[2]

    assert away.startswith("  local   no reply: ")
    assert again.startswith("  local   no reply: ")


def test_neither_a_redirect_nor_a_proxy_leads_elsewhere(
    pushed: Client, program: LocalProgram
) -> None:
    pushed.environment |= {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
    url = program.url.replace("127.0.0.1", "localhost")
    with local_program() as elsewhere, listening(pushed, url) as begun:
        program.status, program.headers = 307, {"Location": elsewhere.url}
        call(pushed)
        shown = begun.lines(3)
        program.next()

        assert shown[2].startswith("  local   307 in ")
        assert elsewhere.received.empty()


def test_programs_get_a_call_as_one_line_of_json(pushed: Client, program: LocalProgram) -> None:
    with listening(pushed, program.url, "--json") as begun:
        run_id = call(pushed, b"tea", "POST /a")
        told = json.loads(begun.line())

    assert (told["run"], told["method"], told["path"]) == (run_id, "POST", "/a")
    assert told["server"] == {"status": 200, "body": '{"size":3}'}
    assert told["local"] == {"status": 200, "body": "noted", "error": None}


BAD_ADDRESSES = {
    "no-scheme": ("127.0.0.1:3000", "is not an address"),
    "another-computer": ("http://shop.example", "the calls could be read"),
    "user-name": ("http://a:b@127.0.0.1", "has a user name"),
    "query": ("http://127.0.0.1/?a=1", "has a user name, a query"),
}


@pytest.mark.parametrize(("url", "message"), BAD_ADDRESSES.values(), ids=BAD_ADDRESSES)
def test_an_unfit_address_is_refused_before_anything_is_asked(
    logged_in: Client, url: str, message: str
) -> None:
    done = logged_in.run("listen", "sum/orders", "--forward", url, "--debug")

    assert done.returncode == 1
    assert message in done.stderr
    assert "graphql" not in done.stderr


def test_listening_needs_the_scope_of_payloads(
    pushed: Client, server: Server, organisation: str, program: LocalProgram
) -> None:
    pushed.log_in(server, server.make_key(organisation, "ReadScripts"))

    output = pushed.fails(3, "listen", "sum/orders", "--forward", program.url)

    assert "that has the scopes: ReadPayloads" in output
    assert program.received.empty()


def test_nothing_is_missed_or_told_twice_over_a_restart(
    pushed: Client, server: Server, program: LocalProgram
) -> None:
    follow = pushed.start("runs", "--follow", "--json")
    assert follow.stdout is not None
    with listening(pushed, program.url) as begun:
        ids = [call(pushed, b"1")]
        first = program.next()
        told: list[Any] = [json.loads(follow.stdout.readline())]
        server.kill()
        lost = [begun.lines(4)[3], follow.stdout.readline()]
        server.start()
        ids += [call(pushed, b"2"), call(pushed, b"3")]
        bodies = [first.body, program.next().body, program.next().body]
        lost += [begun.line(), follow.stdout.readline()]
        told += [json.loads(follow.stdout.readline()) for _ in "23"]
        follow.kill()
        follow.communicate()

    assert bodies == [b"1", b"2", b"3"]
    assert [run["id"] for run in told] == ids
    assert program.received.empty()
    assert all("Trying again" in line for line in lost[:2])
    assert lost[2:] == ["The server answers again.", "The server answers again.\n"]
