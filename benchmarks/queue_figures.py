"""Measures the queue: what an accepted call costs, how soon and how fast queued runs start.

    .venv/bin/python benchmarks/queue_figures.py [--waiting 1000000] [part of a name …]

On SQLite, or on the PostgreSQL server of DATABASE_URL, whose database it fills: give it one of its
own. Starts `manage.py serve` on a free port. Prints each figure beside one that the same run
measured in the same way, so that the machine's speed does not matter.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
_data = tempfile.TemporaryDirectory()
os.environ["MOONHOOK_DATA_DIR"] = _data.name
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import close_old_connections, connection, transaction  # noqa: E402
from django.utils import timezone  # noqa: E402
from uuid_utils.compat import uuid7  # noqa: E402

from accounts.flows.send_pin import deliver_pin  # noqa: E402
from accounts.models import User  # noqa: E402
from benchmarks.comparison import wrk  # noqa: E402
from benchmarks.comparison.order import ORDER, SOURCE, order_to  # noqa: E402
from benchmarks.comparison.servers import Server  # noqa: E402
from benchmarks.comparison.targets import Target  # noqa: E402
from hooks.flows.hooks import IssuedHook, update_hook  # noqa: E402
from jobs.messages import backend  # noqa: E402
from jobs.models import Message, QueueEntry  # noqa: E402
from jobs.queue import wake_up  # noqa: E402
from jobs.queue.claim import Turns, claim_due_runs  # noqa: E402
from scripts_engine.models import Run, RunStatus, Script  # noqa: E402
from tests.factories import make_hook, make_organisation, make_script, past_run  # noqa: E402
from tests.moonhook_server import MoonhookServer  # noqa: E402

ROUNDS = 3
SECONDS = 3
BUSY = "local t = 0 for i = 1, 2e6 do t = t + i end return t"
ORGANISATIONS = 100
ROWS_AT_ONCE = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="part of a figure's name; default: all")
    parser.add_argument("--waiting", type=int, default=100_000, help="most runs that wait")
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    print(f"{connection.vendor}, {os.cpu_count()} cores")
    for figure in (acceptance, throughput, waking_up, fairness, codes, obstacles):
        if _is_wanted(figure.__name__, options.names):
            figure()
    if _is_wanted("claiming", options.names):
        claiming(options.waiting)


def _is_wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(each in name for each in wanted)


def acceptance() -> None:
    """An accepted call beside one that waits for the script: calls/s and latency, by turns."""
    waiting, accepted = _hook(SOURCE), _hook(SOURCE)
    update_hook(accepted.hook, reply_mode="accepted")
    for services in (["web"], ["web", "jobs"]):
        with _serving(*services) as server:
            for connections in (1, 32):
                both = {
                    "script": _drive(server, waiting, 200, connections),
                    "accepted": _drive(server, accepted, 202, connections),
                }
                by_script, by_queue = _medians(both["script"]), _medians(both["accepted"])
                print(
                    f"acceptance, {'+'.join(services):<9} {connections:>2} connections: "
                    f"{by_queue[0]:.0f}/s beside {by_script[0]:.0f}/s "
                    f"({by_queue[0] / by_script[0]:.2f}), p50 {by_queue[1]:.2f} ms "
                    f"beside {by_script[1]:.2f} ms"
                )
        _empty_queue()


def _medians(samples: Sequence[wrk.Sample]) -> tuple[float, float]:
    """Calls a second, and the median latency in ms."""
    rates, latencies = [each.rps for each in samples], [each.p50_ms for each in samples]
    return statistics.median(rates), statistics.median(latencies)


def throughput() -> None:
    """Queued runs a second, beside synchronous calls at 32 connections in the same minute."""
    hook = _hook(SOURCE)
    with _serving("web") as server:
        calls = statistics.median(each.rps for each in _drive(server, hook, 200, 32))
    number = 6_000
    _fill([hook], number)
    began = time.monotonic()
    with _serving("jobs", is_web=False):
        while QueueEntry.objects.count() == number:
            time.sleep(0.02)
        began, left = time.monotonic(), QueueEntry.objects.count()
        while QueueEntry.objects.exists():
            time.sleep(0.05)
    rate = left / (time.monotonic() - began)
    print(f"throughput: {rate:.0f} queued runs/s beside {calls:.0f} calls/s ({rate / calls:.2f})")


def waking_up() -> None:
    """Time from the call to the start of its run, on an idle queue."""
    hook = _hook(SOURCE)
    update_hook(hook.hook, reply_mode="accepted")
    with _serving("web", "jobs") as server:
        for _ in range(100):
            order_to(_url(server, hook)).send()
            time.sleep(0.11)
        _wait_until_empty()
    waits = sorted(_waits_ms(Run.objects.filter(hook_id=hook.hook.pk)))
    print(f"wake-up: p50 {waits[50]:.1f} ms, p95 {waits[95]:.1f} ms, longest {waits[-1]:.1f} ms")


def fairness() -> None:
    """How long another's run waits behind a thousand, in units of one of those runs."""
    busy, other = _hook(BUSY), _hook(SOURCE)
    update_hook(other.hook, reply_mode="accepted")
    _fill([busy], 1_000)
    with _serving("web", "jobs") as server:
        time.sleep(2)
        for _ in range(20):
            order_to(_url(server, other)).send()
            time.sleep(0.3)
        while Run.objects.filter(hook_id=other.hook.pk, status=RunStatus.QUEUED).exists():
            time.sleep(0.05)
    ended = Run.objects.filter(hook_id=busy.hook.pk, status=RunStatus.SUCCEEDED)
    length = statistics.median(ended.values_list("duration_ms", flat=True))
    waits = sorted(_waits_ms(Run.objects.filter(hook_id=other.hook.pk)))
    print(
        f"fairness: behind 1,000 runs of {length:.0f} ms another organisation's run waits "
        f"{waits[10]:.0f} ms, at most {waits[-1]:.0f} ms ({waits[-1] / length:.2f} runs)"
    )
    _empty_queue()


def claiming(most: int) -> None:
    """The time to claim four runs while more and more of them wait, with the plan at the end."""
    hooks = [_hook(SOURCE) for _ in range(ORGANISATIONS)]
    number, filled = 100, 0
    while number <= most:
        _fill(hooks, number - filled)
        filled = number
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
        times = [_claim_ms() for _ in range(50)]
        print(
            f"claiming 4 of {number:>9,}: p50 {statistics.median(times):.2f} ms, "
            f"longest {max(times):.2f} ms"
        )
        number *= 10
    _print_plans()


def codes() -> None:
    """Time from a PIN request to its code's delivery, idle and beside 10,000 queued runs.

    With LISTEN, where there is one, and without it, as when nobody tells the runner.
    """
    user = User.objects.create_user(f"{uuid.uuid4()}@example.com")
    for flood in (0, 10_000):
        if flood:
            _fill([_hook(BUSY)], flood)
        with _serving("jobs", is_web=False):
            _deliver(user)
            for name, wake in (("told", wake_up.wake), ("not told", _nobody_is_told)):
                with mock.patch.object(backend, "wake", wake):
                    took = sorted(_deliver(user) for _ in range(40))
                waiting = QueueEntry.objects.count()
                print(
                    f"codes, {waiting:>6} runs wait, {name:<8}: p50 {took[20]:.0f} ms, "
                    f"p95 {took[38]:.0f} ms, longest {took[-1]:.0f} ms"
                )
        _empty_queue()


def _deliver(user: User) -> float:
    """Returns after how many ms the message was sent."""
    asked_at = timezone.now().isoformat()
    result = deliver_pin.using(queue_name="email").enqueue(user.email, "email", "email", asked_at)
    sent = Message.objects.filter(pk=result.id, status="SUCCESSFUL")
    while not sent.exists():
        time.sleep(0.01)
    message = sent.get()
    return (message.finished_at - message.enqueued_at).total_seconds() * 1000


def _nobody_is_told(channel: str) -> None:
    pass


def obstacles() -> None:
    """The time to claim one run behind thousands that cannot start, beside behind none."""
    for number in (0, 10_000):
        for obstacle in ("paused", "at its limit"):
            organisation = make_organisation(f"Bench {uuid.uuid4()}")
            blocked = make_hook(make_script(organisation, SOURCE))
            free = make_hook(make_script(organisation, SOURCE))
            script = Script.objects.filter(pk=blocked.hook.script_id)
            if obstacle == "paused":
                script.update(queue_paused_at=timezone.now())
            else:
                script.update(max_concurrent_runs=1)
                _fill([blocked], 1)
                claim_due_runs(1, Turns())
            _fill([blocked], number)
            _fill([free], 1)
            if connection.vendor == "postgresql":
                with connection.cursor() as cursor:
                    cursor.execute("ANALYZE")
            times = [_claim_ms(1) for _ in range(50)]
            print(
                f"obstacles: claiming 1 behind {number:>6,} of a script that is {obstacle}: "
                f"p50 {statistics.median(times):.2f} ms, longest {max(times):.2f} ms"
            )
            _empty_queue()


def _print_plans() -> None:
    """How the database answers what a claim asks."""
    asked: dict[str, Any] = {}

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        asked[sql] = params
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        _claim_ms()
    explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN (ANALYZE)"
    for sql, params in asked.items():
        words = sql.split()
        if words[0] not in {"SELECT", "WITH", "UPDATE"}:
            continue
        print(" ".join(words[:3]), "…")
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"{explain} {sql}", params)
            for row in cursor.fetchall():
                print("   ", row[-1])
            transaction.set_rollback(True)


def _claim_ms(expected: int = 4) -> float:
    began = time.perf_counter()
    with transaction.atomic():
        claimed = claim_due_runs(4, Turns()).claimed
        took = time.perf_counter() - began
        transaction.set_rollback(True)
    if len(claimed) != expected:
        raise RuntimeError("nothing to claim")
    return took * 1000


def _hook(source: str) -> IssuedHook:
    return make_hook(make_script(make_organisation(f"Bench {uuid.uuid4()}"), source))


def _url(server: MoonhookServer, issued: IssuedHook) -> str:
    return server.url + "/hook/" + issued.hook.url_with(issued.call_token).partition("/hook/")[2]


@contextmanager
def _serving(*services: str, is_web: bool = True) -> Iterator[MoonhookServer]:
    kept = {name: os.environ[name] for name in ("DATABASE_URL",) if name in os.environ}
    server = MoonhookServer(Path(_data.name), *services, "--no-demo", **kept)
    close_old_connections()
    try:
        server.start()
        if is_web:
            server.wait_until_ready()
        yield server
    finally:
        server.stop()


def _drive(
    server: MoonhookServer, issued: IssuedHook, status: int, connections: int
) -> list[wrk.Sample]:
    url = _url(server, issued)
    running = Server("moonhook", server.process.pid, server.url)
    target = Target("hook", running, [order_to(url)], lambda body: True, "", status=status)
    target.check()
    samples = []
    for _ in range(ROUNDS):
        sample = wrk.drive(target, connections=connections, seconds=SECONDS)
        if sample.not_2xx or sample.socket_errors:
            raise RuntimeError(f"{sample.not_2xx} of {sample.requests} calls were refused")
        samples.append(sample)
        if status == 202:
            _empty_queue()
    return samples


def _fill(hooks: Sequence[IssuedHook], number: int) -> None:
    """Queues that many runs, in turn for each hook."""
    body = str(ORDER).replace("'", '"').encode()
    for start in range(0, number, ROWS_AT_ONCE):
        runs, entries = [], []
        for place in range(start, min(start + ROWS_AT_ONCE, number)):
            hook = hooks[place % len(hooks)].hook
            run = past_run(hook, timezone.now(), RunStatus.QUEUED.value, request_body=body)
            run.pk, run.attempt, run.payload_bytes = uuid7(), 1, len(body)
            runs.append(run)
            entries.append(
                QueueEntry(
                    run=run,
                    organisation_id=run.organisation_id,
                    script_id=run.script_id,
                    hook_id=hook.pk,
                    payload_of=run.pk,
                    due_at=run.started_at - timedelta(seconds=1),
                    max_attempts=5,
                )
            )
        with transaction.atomic():
            Run.objects.bulk_create(runs, batch_size=500)
            QueueEntry.objects.bulk_create(entries, batch_size=500)


def _empty_queue() -> None:
    QueueEntry.objects.all().delete()
    Run.objects.filter(status__in=(RunStatus.QUEUED, RunStatus.RUNNING)).delete()


def _wait_until_empty() -> None:
    while QueueEntry.objects.exists():
        time.sleep(0.05)


def _waits_ms(runs: Iterable[Run]) -> list[float]:
    """From the run's id, which was made when it was queued, to its start."""
    return [run.started_at.timestamp() * 1000 - (run.pk.int >> 80) for run in runs]


if __name__ == "__main__":
    main()
