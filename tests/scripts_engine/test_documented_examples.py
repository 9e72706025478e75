"""Every example of docs/lua.md does what it says."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.test import override_settings

from accounts.models import Organisation
from scripts_engine.lua_reference import lua_reference
from scripts_engine.models import Trigger
from scripts_engine.runs.execution import try_script
from scripts_engine.runs.spec import NOBODY, Event
from scripts_engine.secrets import set_secret
from tests.factories import make_script

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lua.md"
EXAMPLES = re.findall(r"```lua\n(.*?)\n((?:-->[^\n]*\n)+)```", PAGE.read_text(), re.DOTALL)
[MONEY] = re.findall(r"~~~lua\n(.*?)~~~", PAGE.read_text(), re.DOTALL)
EVENT = Event(
    method="POST",
    query="page=2",
    headers=(("X-Shop", "tea"), ("Content-Type", "application/json")),
    body=b'{"items": [{"price": 4.5, "quantity": 2}]}    ',
    client_address="",
)


class Shop(BaseHTTPRequestHandler):
    """The shop of the examples."""

    def do_GET(self) -> None:
        self.answer(200, b'{"tea": 2}')

    def do_PUT(self) -> None:
        self.answer(204, b"")

    def do_HEAD(self) -> None:
        self.answer(200, b"")

    do_POST = do_PATCH = do_DELETE = do_PUT  # noqa: N815

    def answer(self, status: int, body: bytes) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def shop_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("source", "expected"), EXAMPLES)
def test_an_example_does_what_it_says(
    acme: Organisation, shop_url: str, source: str, expected: str
) -> None:
    set_secret(acme, name="SHOP_KEY", value="sk_test")
    make_script(acme, MONEY, "money", is_library=True)
    script = make_script(acme, source.replace("https://shop.example", shop_url), name="order")
    make_script(acme, name="ship")
    with override_settings(HTTP_ALLOWED_NETWORKS=[ip_network("127.0.0.1/32")]):
        run = try_script(script, event=EVENT, author=NOBODY, trigger=Trigger.ADMIN)

    assert run.error_message == ""
    lines = [line.removeprefix("--> ").rstrip() for line in expected.splitlines()]
    assert bytes(run.response_body).decode().splitlines() == lines


def test_every_function_has_an_example() -> None:
    sources = "\n".join(source for source, _ in EXAMPLES)

    assert len(EXAMPLES) > 20
    assert [entry.name for entry in lua_reference().moonhook if entry.name not in sources] == []
