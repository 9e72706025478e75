"""The processes of a running server, read from /proc."""

import os
from pathlib import Path

from tests.eventually import eventually
from tests.moonhook_server import MoonhookServer
from tests.process_tree import children_of, command_of, family_of, is_alive, name_of


def services_of(server: MoonhookServer, name: str) -> list[int]:
    """Children of the parent of all, without those that dead ones have left to it."""
    return [
        pid
        for pid in children_of(server.process.pid)
        if name_of(pid) == name[:15] and is_alive(pid) and os.getpgid(pid) == pid
    ]


def web_servers(server: MoonhookServer) -> list[int]:
    """The parents of web workers: one, or none when it has just died."""
    return services_of(server, "web server")


def web_server(server: MoonhookServer) -> int:
    [pid] = web_servers(server)
    return pid


def web_workers(server: MoonhookServer) -> set[int]:
    return set(children_of(web_server(server)))


def sandboxes(server: MoonhookServer) -> list[int]:
    """Fork servers and their children."""
    family = family_of(server.process.pid)
    return [pid for pid in family if "scripts_engine.sandbox.child.fork_server" in command_of(pid)]


def fork_servers(server: MoonhookServer) -> list[int]:
    return [pid for pid in sandboxes(server) if os.getpgid(pid) == pid]


def sandbox_children(server: MoonhookServer) -> list[int]:
    return [pid for pid in sandboxes(server) if os.getpgid(pid) != pid]


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def wait_for_replacement(server: MoonhookServer, old: set[int], *, count: int) -> None:
    """Until so many workers are there and none of the old ones."""
    eventually(lambda: len(web_workers(server)) == count and not web_workers(server) & old)
