"""Many organisations in turn compared with one; a sandbox serves one organisation only."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison.moonhook import moonhook
from benchmarks.comparison.order import is_right, order_to
from benchmarks.comparison.setting import Setting
from benchmarks.comparison.targets import Target

ONE = "one organisation"


@contextmanager
def tenants(setting: Setting) -> Iterator[list[Target]]:
    """Runs on SQLite."""
    with moonhook("Moonhook", setting.directory) as running:
        made = running.make_fixtures(tenants=setting.tenants)
        calls = [order_to(url) for url in made.hooks]
        yield [
            Target(ONE, running.server, calls[:1], is_right, base=ONE),
            Target(f"{setting.tenants} in turn", running.server, calls, is_right, base=ONE),
        ]
