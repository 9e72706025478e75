"""deploy/nginx.conf as a real nginx runs it, in front of two nodes with one database."""

import getpass
import grp
import http.client
import os
import re
import shutil
import signal
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

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(NGINX is None, reason="nginx is not installed")]
CONFIGURATION = Path(__file__).resolve().parent.parent.parent / "deploy" / "nginx.conf"


class Nginx:
    def __init__(self, directory: Path, node_ports: list[int]) -> None:
        self.port = free_port()
        self.plain_port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = directory / "access.log"
        self.error_log = directory / "error.log"
        self._directory = directory
        self._configuration = directory / "nginx.conf"
        self._configuration.write_text(self._on_loopback(CONFIGURATION.read_text(), node_ports))

    def _on_loopback(self, text: str, node_ports: list[int]) -> str:
        """The same without TLS, at free ports, and with every file in a directory of its own."""
        text = text.replace("listen 443 ssl http2;", f"listen 127.0.0.1:{self.port};")
        text = re.sub(r"\n\s*ssl_\w+ .*", "", text)
        text = text.replace("listen 80;", f"listen 127.0.0.1:{self.plain_port};")
        text = text.replace("/var/log/nginx/moonhook.log", str(self.log))
        text = text.replace("/var/log/nginx/moonhook-error.log", str(self.error_log))
        for name, port in zip(("8001", "8002"), node_ports, strict=True):
            text = text.replace(f"127.0.0.1:{name}", f"127.0.0.1:{port}")
        # Behind TLS it would be https.
        text = text.replace("X-Forwarded-Proto $scheme", "X-Forwarded-Proto https")
        group = grp.getgrgid(os.getgid()).gr_name
        paths = "\n".join(
            f"{kind}_temp_path {self._directory / kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return (
            f"daemon off; worker_processes 1; user {getpass.getuser()} {group};\n"
            f"pid {self._directory / 'pid'};\n"
            f"error_log {self.error_log};\n"
            f"events {{}}\nhttp {{\n{paths}\n{text}\n}}\n"
        )

    @contextmanager
    def running(self) -> Iterator["Nginx"]:
        command = [str(NGINX), "-p", str(self._directory), "-c", str(self._configuration)]
        subprocess.run([*command, "-t"], check=True, capture_output=True)
        process = subprocess.Popen(command)
        try:
            eventually(self._listens)
            yield self
        finally:
            process.terminate()
            process.wait(timeout=30)

    def _listens(self) -> bool:
        try:
            call("GET", f"{self.url}/healthz", None, {"Host": HOST})
        except ConnectionError:
            return False
        return True


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MoonhookServer]]:
    with two_nodes(tmp_path_factory.mktemp("data")) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def nginx(nodes: list[MoonhookServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    directory = tmp_path_factory.mktemp("nginx")
    with Nginx(directory, [node.port for node in nodes]).running() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def hook_path(nodes: list[MoonhookServer]) -> str:
    return hook_path_of(nodes[0])


def test_calls_go_through(nginx: Nginx, hook_path: str) -> None:
    status, body, headers = call("POST", f"{nginx.url}{hook_path}", b"{}", {"Host": HOST})

    assert (status, body) == (200, b"quick")
    assert headers["Strict-Transport-Security"]


def test_internal_paths_are_not_public(nginx: Nginx, nodes: list[MoonhookServer]) -> None:
    inside = call("GET", f"{nodes[0].url}/readyz")[0]
    outside = [
        call("GET", f"{nginx.url}{path}", None, {"Host": HOST})[0]
        for path in ("/readyz", "/metrics")
    ]

    assert inside == 200
    assert outside == [404, 404]


@pytest.mark.parametrize(
    "disguise",
    ["/hook/", "/HOOK/", "//hook//", "/x/../hook/", "/%68ook/", "/hooks/"],
)
def test_no_call_token_is_in_the_access_log(nginx: Nginx, hook_path: str, disguise: str) -> None:
    before = len(nginx.log.read_text().splitlines())
    path = hook_path.replace("/hook/", disguise)
    call("POST", f"{nginx.url}{path}?attempt=1", b"{}", {"Host": HOST})
    eventually(lambda: len(nginx.log.read_text().splitlines()) > before)
    token = hook_path.rpartition("/")[2]

    assert token[4:] not in nginx.log.read_text()
    assert "[redacted]" in nginx.log.read_text().splitlines()[-1]


def test_a_mistyped_token_is_not_in_the_access_log_either(nginx: Nginx, hook_path: str) -> None:
    mistyped = "mhcMistyped123456789"
    path = f"{hook_path.rpartition('/')[0]}/{mistyped}"
    assert call("POST", f"{nginx.url}{path}", b"{}", {"Host": HOST})[0] == 404
    eventually(lambda: " 404 " in nginx.log.read_text())

    assert mistyped not in nginx.log.read_text()


def test_the_address_of_the_basic_variant_is_logged_whole(nginx: Nginx, hook_path: str) -> None:
    _, _, organisation, script, _ = hook_path.split("/")
    path = f"/hook/secure/{organisation}/{script}"
    assert call("POST", f"{nginx.url}{path}", b"{}", {"Host": HOST})[0] == 401

    eventually(lambda: f'"POST {path}" 401' in nginx.log.read_text())


def test_no_call_token_is_in_the_error_log(
    nginx: Nginx, nodes: list[MoonhookServer], hook_path: str, tmp_path: Path
) -> None:
    """nginx writes the whole request line beside each error, in a format that it has fixed."""
    token = hook_path.rpartition("/")[2]
    away = Nginx(tmp_path, [free_port(), free_port()])
    with away.running():
        refused = call("POST", f"{away.url}{hook_path}", b"{}", {"Host": HOST})[0]
        too_large = call("POST", f"{away.url}{hook_path}", b"x" * (3 << 20), {"Host": HOST})[0]
        eventually(lambda: '" 413 ' in away.log.read_text())

    assert (refused, too_large) == (502, 413)
    assert token[4:] not in away.error_log.read_text() + away.log.read_text()
    # What the error log would have told: which node did not answer.
    assert "upstream=127.0.0.1:" in away.log.read_text()


def test_plain_http_is_redirected_without_logging_the_call_token(
    nginx: Nginx, hook_path: str
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", nginx.plain_port, timeout=30)
    connection.request("GET", hook_path, headers={"Host": HOST})
    answer = connection.getresponse()
    connection.close()
    eventually(lambda: '" 308 ' in nginx.log.read_text())

    assert (answer.status, answer.headers["Location"]) == (308, f"https://{HOST}{hook_path}")
    assert hook_path.rpartition("/")[2] not in nginx.log.read_text()


def test_a_body_above_the_limit_is_refused_in_moonhooks_words(nginx: Nginx, hook_path: str) -> None:
    body = b"x" * (1024 * 1024 + 1)
    status, answer, _ = call("POST", f"{nginx.url}{hook_path}", body, {"Host": HOST})

    assert status == 413
    assert b"urn:moonhook:problem:body-too-large" in answer


def test_a_client_that_trickles_does_not_reach_a_node(nginx: Nginx, hook_path: str) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=30)
    slow.putrequest("POST", hook_path, skip_host=True)
    slow.putheader("Host", HOST)
    slow.putheader("Content-Length", "10")
    slow.endheaders(b"12345")
    status = call("POST", f"{nginx.url}{hook_path}", b"{}", {"Host": HOST})[0]
    slow.send(b"67890")
    answer = slow.getresponse()

    assert status == answer.status == 200
    slow.close()


def test_a_node_is_restarted_and_no_call_is_lost(
    nginx: Nginx, nodes: list[MoonhookServer], hook_path: str
) -> None:
    before = set(run_ids(nodes[0]))
    with Load(f"{nginx.url}{hook_path}", host=HOST).running() as load:
        nodes[1].process.send_signal(signal.SIGTERM)
        exit_status = nodes[1].process.wait(60)
        nodes[1].start()
        nodes[1].wait_until_ready()
        called_before = len(load.runs)
        eventually(lambda: len(load.runs) > called_before + 20)

    assert exit_status == 0
    assert load.failures == []
    assert load.statuses == {200}
    assert set(run_ids(nodes[0])) - before == set(load.runs)


def test_a_stranger_whose_large_bodies_are_refused_disturbs_nobody(
    nginx: Nginx, nodes: list[MoonhookServer], hook_path: str
) -> None:
    refusals = [*REFUSALS.values(), *hook_refusals(nodes[0]).values()]
    before = set(run_ids(nodes[0]))
    with Load(f"{nginx.url}{hook_path}", host=HOST, pause_seconds=0.01).running() as load:
        statuses = [statuses_of(refusal, nginx.url, HOST) for refusal in refusals]

    assert load.failures == []
    assert load.statuses == {200}
    assert statuses == [[refusal.status] * 2 for refusal in refusals]
    assert set(run_ids(nodes[0])) - before == set(load.runs)


def test_a_few_broken_connections_do_not_exclude_a_node(tmp_path: Path) -> None:
    with (
        BrittleNode().running() as first,
        BrittleNode().running() as second,
        Nginx(tmp_path, [first.port, second.port]).running() as proxy,
    ):
        headers = {"Host": HOST}
        broken = [call("POST", f"{proxy.url}/break", b"", headers)[0] for _ in range(6)]
        others = [call("POST", f"{proxy.url}/", b"", headers)[0] for _ in range(20)]

    assert broken == [502] * 6
    assert others == [200] * 20
