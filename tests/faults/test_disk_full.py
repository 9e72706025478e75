"""SQLite on a full disk: a run that cannot be stored is an error until there is space."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.node import Node, call_hook, new_hook
from tests.process_tree import children_of, send
from tests.sessions import call, machine_token

pytestmark = pytest.mark.slow

PAYLOAD = b"x" * 200_000


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """Of 12 MiB, in memory."""
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "moonhook-test", str(directory)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def fill(disk: Path) -> Path:
    """Takes all that is left; the file that holds it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            return ballast


def test_a_change_that_cannot_be_stored_is_not_answered_as_done(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        node = Node(disk / "data", DATABASE_URL=f"sqlite:///{disk}/data/moonhook.sqlite3")
        node.manage("migrate", "-v0")
        with node.running():
            token = machine_token(node)
            _, hook = new_hook(node, token, 'return "done"')
            before = call_hook(node, hook, PAYLOAD)
            ballast = fill(disk)
            status, body, headers = call("POST", node.url + hook, PAYLOAD)
            reading, _, _ = call(
                "GET", f"{node.url}/session", None, {"Authorization": f"Bearer {token}"}
            )
            ballast.unlink()
            after = call_hook(node, hook, PAYLOAD)
            node.stop()
        kept = node.manage("shell", "-v0", "-c", COUNT).split()

    assert before is not None
    assert before.status == 200
    assert (status, json.loads(body)["code"]) == (503, "run-not-recorded")
    assert headers["Retry-After"]
    assert "disk is full" in node.output
    assert "Traceback" not in node.output
    assert reading == 200
    assert after is not None
    assert (after.status, after.body) == (200, b"done")
    assert kept == ["2"]


def test_a_node_on_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        node = Node(disk / "data", DATABASE_URL=f"sqlite:///{disk}/data/moonhook.sqlite3")
        node.manage("migrate", "-v0")
        with node.running():
            before, _, _ = call("GET", f"{node.url}/readyz")
            ballast = fill(disk)
            status, body, _ = call("GET", f"{node.url}/readyz")
            ballast.unlink()
            after, _, _ = call("GET", f"{node.url}/readyz")

    assert (before, status, after) == (200, 503, 200)
    assert json.loads(body)["reasons"] == {"database": "disk-full"}


def test_web_workers_count_and_start_without_room_for_their_numbers(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        database = f"sqlite:///{disk}/data/moonhook.sqlite3"
        metrics = {"METRICS": "on", "METRICS_TOKEN": METRICS_TOKEN, "DATABASE_URL": database}
        node = Node(disk / "data", **metrics)
        node.manage("migrate", "-v0")
        with node.running():
            numbers(node)
            fill(disk)
            statuses = {call("GET", f"{node.url}/{page}")[0] for page in NO_PAGES}
            send(signal.SIGKILL, children_of(node.process.pid))
            node.wait_until_ready()
            status, shown = numbers(node)

    assert statuses == {404}
    assert status == 200
    assert b"moonhook_build_info" in shown
    assert "SIGBUS" not in node.output
    assert "No disk space for the metrics of this process" in node.output


METRICS_TOKEN = "t" * 32
NO_PAGES = [f"nothing-{number}" for number in range(20)]


def numbers(node: Node) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    status, content, _ = call("GET", f"{node.url}/metrics", None, headers)
    return status, content


COUNT = "from scripts_engine.models import Run; print(Run.objects.count())"
