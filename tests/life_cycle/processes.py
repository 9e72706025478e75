"""The processes of a running server, read from /proc."""

from pathlib import Path

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except FileNotFoundError:
        return ""


def web_server(server: MoonhookServer) -> int:
    """The parent of the web workers."""
    [pid] = [pid for pid in children_of(server.process.pid) if "config.web" in command_of(pid)]
    return pid


def web_workers(server: MoonhookServer) -> set[int]:
    return set(children_of(web_server(server)))


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_for_replacement(server: MoonhookServer, old: set[int], *, count: int) -> None:
    """Until so many workers are there and none of the old ones."""
    eventually(lambda: len(web_workers(server)) == count and not web_workers(server) & old)
