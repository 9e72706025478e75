"""The hook call: Moonhook, the floors, and the alternatives."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.comparison.floors.serving import FLOOR, floor
from benchmarks.comparison.moonhook import moonhook
from benchmarks.comparison.order import TOKEN, WRONG_TOKEN, is_right, order_to, signed_order_to
from benchmarks.comparison.peers import PEERS
from benchmarks.comparison.progress import say
from benchmarks.comparison.servers import Server
from benchmarks.comparison.setting import Setting
from benchmarks.comparison.targets import Target


@contextmanager
def hook_calls(setting: Setting) -> Iterator[list[Target]]:
    with ExitStack() as running, setting.moonhooks() as moonhooks:
        start = running.enter_context
        ours = list(moonhooks.values())
        quiet = moonhook("Moonhook, SQLite, no access log", setting.directory, ACCESS_LOG="off")
        ours.append(start(quiet))
        made = [each.make_fixtures() for each in ours]
        size = made[0].size
        floors = (
            start(floor(FLOOR, "django_project", size, setting.directory)),
            start(floor("WSGI callable", "wsgi_callable", size, setting.directory)),
        )
        targets = [_target_of_floor(server) for server in floors]
        targets += [
            _target(each.server, fixtures.hooks[0], fixtures.wrong_hook)
            for each, fixtures in zip(ours, made, strict=True)
        ]
        targets += [
            _signed_target(each.server, fixtures.signed_hook)
            for each, fixtures in zip(ours, made, strict=True)
            if fixtures.signed_hook
        ]
        for peer in PEERS:
            if lacking := peer.lacks():
                say(f"{peer.name} is left out: not installed: {lacking}")
                continue
            server = start(peer.serving(setting.directory, size))
            targets.append(_target(server, peer.hook_of(server), peer.wrong_hook_of(server)))
        yield targets


def _target_of_floor(server: Server) -> Target:
    return _target(server, *(f"{server.url}/hook/{token}" for token in (TOKEN, WRONG_TOKEN)))


def _signed_target(server: Server, url: str) -> Target:
    """A call that GitHub signs, compared with the plain one."""
    return Target(
        f"{server.name}, signed",
        server,
        [signed_order_to(url)],
        is_right,
        base=server.name,
        refused=order_to(url),
    )


def _target(server: Server, url: str, wrong_url: str) -> Target:
    return Target(
        server.name,
        server,
        [order_to(url)],
        is_right,
        base=FLOOR,
        refused=order_to(wrong_url),
    )
