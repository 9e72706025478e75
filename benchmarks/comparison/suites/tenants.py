"""Organisations beside each other: many in turn, and one beside another's endless loops."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.comparison.moonhook import Moonhook, moonhook
from benchmarks.comparison.order import is_right, order_to
from benchmarks.comparison.requests import Request
from benchmarks.comparison.setting import Setting
from benchmarks.comparison.targets import Target


@contextmanager
def tenants(setting: Setting) -> Iterator[list[Target]]:
    """Runs on SQLite."""
    with ExitStack() as running:
        yield [
            target
            for version, root in setting.roots.items()
            for target in _targets(
                running.enter_context(moonhook(f"Moonhook{version}", setting.directory, root=root)),
                setting.tenants,
                version,
            )
        ]


def _targets(moonhook: Moonhook, tenants: int, version: str) -> list[Target]:
    made = moonhook.make_fixtures(tenants=tenants)
    calls = [order_to(url) for url in made.hooks]
    one = f"one organisation{version}"

    def target(name: str, requests: list[Request], beside: Request | None = None) -> Target:
        return Target(name, moonhook.server, requests, is_right, base=one, beside=beside)

    loops = Request(made.looping_hook)
    return [
        target(one, calls[:1]),
        target(f"{tenants} in turn{version}", calls),
        target(f"one beside two endless loops{version}", calls[:1], loops),
    ]
