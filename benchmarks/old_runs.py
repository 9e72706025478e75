# ruff: noqa: E402  (the settings are read from an environment that is made here)
"""Measures the deletion of old runs, and its effect on concurrent writers.

    .venv/bin/python benchmarks/old_runs.py [RUNS]

Fills a database (PostgreSQL if DATABASE_URL names one) with that many runs, half of them another
organisation's; keeps 10,000 of the rest, while another client writes all the time.
"""

import os
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["MOONHOOK_DATA_DIR"] = tempfile.mkdtemp()
os.environ["RUNS_KEPT_PER_ORGANISATION"] = "10000"
os.environ["LOG_LEVEL"] = "WARNING"

import django

django.setup()

from django.core.management import call_command
from django.db import connection, connections
from django.db.models.query import QuerySet
from django.utils import timezone
from uuid_utils.compat import uuid7

from accounts.models import Organisation, RateCounter
from scripts_engine.flows.scripts import create_script
from scripts_engine.models import Run, Script
from scripts_engine.models.run import NEWEST_FIRST, OLDEST_FIRST
from scripts_engine.runs.retention import forget_old_runs
from scripts_engine.runs.spec import NOBODY

PAYLOAD = b'{"items": [{"quantity": 2, "price": 4.5}]}' * 12


class Writer(threading.Thread):
    """Commits a row repeatedly; ``waits`` contains the durations in ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.waits: list[float] = []
        self.ends = threading.Event()

    def run(self) -> None:
        while not self.ends.is_set():
            began = time.perf_counter()
            RateCounter.objects.create(key=uuid.uuid4().hex, hits=1, ends_at=0)
            self.waits.append((time.perf_counter() - began) * 1000)
            time.sleep(0.005)
        connections.close_all()


def a_script(name: str) -> Script:
    organisation = Organisation.objects.create(name=name)
    return create_script(organisation, name=name, source="return 1", author=NOBODY)


def runs(count: int, scripts: list[Script]) -> Iterator[Run]:
    for number in range(count):
        script = scripts[number % len(scripts)]
        yield Run(
            id=uuid7(),
            organisation=script.organisation,
            script=script,
            script_version=script.current_version,
            trigger="hook",
            status="succeeded",
            started_at=timezone.now(),
            queued_ms=0,
            duration_ms=1,
            request_method="POST",
            request_body=PAYLOAD,
            response_status=200,
            response_body=PAYLOAD,
        )


def show(title: str, rows: QuerySet) -> None:
    began = time.perf_counter()
    list(rows)
    spent = (time.perf_counter() - began) * 1000
    options = {"analyze": True} if connection.vendor == "postgresql" else {}
    print(f"{title}: {spent:.1f} ms\n{rows.explain(**options)}\n")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    call_command("migrate", verbosity=0)
    scripts = [a_script("Acme"), a_script("Globex")]
    Organisation.objects.filter(name="Globex").update(runs_kept=0)
    Run.objects.bulk_create(runs(count, scripts), batch_size=1_000)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    ids = Run.objects.in_range_of(scripts[0].organisation.pk).values_list("pk", flat=True)
    show("the last run to keep", ids.order_by(*NEWEST_FIRST)[9_999:10_000])
    end = ids.order_by(*NEWEST_FIRST)[9_999]
    show("a batch", ids.filter(pk__lt=end).order_by(*OLDEST_FIRST)[:1_000])

    writer = Writer()
    writer.start()
    began = time.perf_counter()
    forgotten = forget_old_runs()
    spent = time.perf_counter() - began
    writer.ends.set()
    writer.join()
    waits = quantiles(writer.waits, n=100)
    print(
        f"{connection.vendor}: {forgotten} runs in {spent:.1f} s, {forgotten / spent:.0f} a second"
    )
    print(
        f"writes meanwhile: {len(writer.waits)}, ms: median {waits[49]:.1f}, 99 % {waits[98]:.1f}, "
        f"most {max(writer.waits):.1f}"
    )
    began = time.perf_counter()
    print(f"a round with nothing to do: {forget_old_runs()}, {(time.perf_counter() - began):.3f} s")


main()
