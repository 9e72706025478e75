"""deploy/Caddyfile as a real Caddy runs it, on one machine with two nodes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.deploy.nodes import HOST, BrittleNode, statuses_of, two_nodes
from tests.eventually import eventually
from tests.life_cycle.hooks import hook_path_of, run_ids
from tests.life_cycle.load import Load
from tests.life_cycle.refusals import REFUSALS, hook_refusals
from tests.moonhook_server import MoonhookServer
from tests.servers import free_port
from tests.sessions import call

CADDY = shutil.which("caddy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CADDY is None, reason="caddy is not installed")]
CONFIGURATION = Path(__file__).resolve().parent.parent.parent / "deploy" / "Caddyfile"


class Caddy:
    def __init__(self, directory: Path, node_ports: list[int]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # With the port, by which Caddy finds the site's log.
        self.host = f"{HOST}:{self.port}"
        self.log = directory / "log"
        self._configuration = directory / "Caddyfile"
        self._configuration.write_text(self._on_loopback(CONFIGURATION.read_text(), node_ports))
        self._environment = {
            "HOME": str(directory),
            "XDG_DATA_HOME": str(directory),
            "XDG_CONFIG_HOME": str(directory),
            "PUBLIC_HOST": f"http://{self.host}",
        }

    def _on_loopback(self, text: str, node_ports: list[int]) -> str:
        """The same without TLS, at a free port."""
        addresses = " ".join(f"127.0.0.1:{port}" for port in node_ports)
        text = text.replace("web-1:8000 web-2:8000", addresses)
        # What Caddy 2.6 and older call it.
        text = re.sub(r"\brequest_buffers 2MB", "buffer_requests", text)
        text = text.replace("{$PUBLIC_HOST} {", "{$PUBLIC_HOST} {\n\tbind 127.0.0.1", 1)
        return text.replace("\n{\n", "\n{\n\tadmin off\n\tauto_https off\n", 1)

    @contextmanager
    def running(self) -> Iterator["Caddy"]:
        command = [str(CADDY), "run", "--adapter", "caddyfile"]
        with self.log.open("w") as log:
            process = subprocess.Popen(
                [*command, "--config", str(self._configuration)],
                env=self._environment,
                stdout=log,
                stderr=log,
            )
            try:
                eventually(self._answers)
                yield self
            finally:
                process.terminate()
                process.wait(timeout=30)

    def _answers(self) -> bool:
        try:
            call("GET", f"{self.url}/metrics", None, {"Host": self.host})
        except ConnectionError:
            return False
        return True


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MoonhookServer]]:
    with two_nodes(tmp_path_factory.mktemp("data"), WEB_CONCURRENCY="1") as nodes:
        yield nodes


@pytest.fixture(scope="module")
def node(nodes: list[MoonhookServer]) -> MoonhookServer:
    return nodes[0]


@pytest.fixture(scope="module")
def caddy(nodes: list[MoonhookServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caddy]:
    directory = tmp_path_factory.mktemp("caddy")
    with Caddy(directory, [node.port for node in nodes]).running() as proxy:
        yield proxy


def get(caddy: Caddy, path: str, **headers: str) -> int:
    status, _, _ = call("GET", f"{caddy.url}{path}", None, {"Host": caddy.host, **headers})
    return int(status)


def test_calls_go_through(caddy: Caddy, node: MoonhookServer) -> None:
    path = hook_path_of(node)
    status, body, _ = call("POST", f"{caddy.url}{path}", b"{}", {"Host": caddy.host})
    token = path.rpartition("/")[2]
    eventually(lambda: "/hook/" in caddy.log.read_text())

    assert (status, body) == (200, b"quick")
    assert token not in caddy.log.read_text()


@pytest.mark.parametrize("disguise", ["/HOOK/", "//hook//", "/x/../hook/", "/%68ook/", "/hooks/"])
def test_no_call_token_is_in_the_log_however_the_address_is_written(
    caddy: Caddy, node: MoonhookServer, disguise: str
) -> None:
    path = hook_path_of(node).replace("/hook/", disguise)
    before = caddy.log.read_text().count("handled request")
    call("POST", f"{caddy.url}{path}?attempt=1", b"{}", {"Host": caddy.host})
    eventually(lambda: caddy.log.read_text().count("handled request") > before)

    assert path.rpartition("/")[2][4:] not in caddy.log.read_text()


def test_a_mistyped_token_is_not_in_the_log_either(caddy: Caddy, node: MoonhookServer) -> None:
    mistyped = "mhcMistyped123456789"
    path = f"{hook_path_of(node).rpartition('/')[0]}/{mistyped}"
    before = caddy.log.read_text().count("handled request")
    assert call("POST", f"{caddy.url}{path}", b"{}", {"Host": caddy.host})[0] == 404
    eventually(lambda: caddy.log.read_text().count("handled request") > before)

    assert mistyped not in caddy.log.read_text()


def test_no_call_token_is_in_the_log_while_no_node_answers(
    node: MoonhookServer, tmp_path: Path
) -> None:
    path = hook_path_of(node)
    with Caddy(tmp_path, [free_port()]).running() as away:
        headers = {"Host": away.host, "Referer": f"https://{HOST}{path}"}
        status = call("POST", f"{away.url}{path}", b"{}", headers)[0]
        too_large = call("POST", f"{away.url}{path}", b"x" * (3 << 20), headers)[0]
        eventually(lambda: away.log.read_text().count("/hook/") > 1)

    assert status == 503
    assert too_large in {413, 503}
    assert path.rpartition("/")[2][4:] not in away.log.read_text()


def test_internal_paths_are_not_public(caddy: Caddy, node: MoonhookServer) -> None:
    assert call("GET", f"{node.url}/readyz")[0] == 200
    assert get(caddy, "/readyz") == get(caddy, "/metrics") == 404


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "Script-Name", "PATH_INFO"])
def test_no_header_bypasses_the_paths_that_the_proxy_blocks(caddy: Caddy, name: str) -> None:
    assert get(caddy, "/x/readyz", **{name: "/x"}) == 404
    assert get(caddy, "/healthz", **{name: "/readyz"}) == 200


def test_a_stranger_whose_large_bodies_are_refused_disturbs_nobody(
    caddy: Caddy, node: MoonhookServer
) -> None:
    path = hook_path_of(node)
    # Of another host Caddy has no site.
    mine = [refusal for refusal in REFUSALS.values() if refusal.host is None]
    refusals = [*mine, *hook_refusals(node).values()]
    before = set(run_ids(node))
    with Load(f"{caddy.url}{path}", host=caddy.host, pause_seconds=0.01).running() as load:
        statuses = [statuses_of(refusal, caddy.url, caddy.host) for refusal in refusals]

    assert load.failures == []
    assert load.statuses == {200}
    assert statuses == [[refusal.status] * 2 for refusal in refusals]
    assert set(run_ids(node)) - before == set(load.runs)


def test_a_few_broken_connections_do_not_exclude_a_node(tmp_path: Path) -> None:
    with (
        BrittleNode().running() as first,
        BrittleNode().running() as second,
        Caddy(tmp_path, [first.port, second.port]).running() as proxy,
    ):
        headers = {"Host": proxy.host}
        broken = [call("POST", f"{proxy.url}/break", b"", headers)[0] for _ in range(6)]
        others = [call("POST", f"{proxy.url}/", b"", headers)[0] for _ in range(20)]

    assert broken == [502] * 6
    assert others == [200] * 20
