"""GET /metrics of a real server with two web workers."""

import os
import re
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from scripts_engine.models import Trigger
from scripts_engine.runs.rows import STATUS_OF
from scripts_engine.sandbox import BusyReason, KillReason
from tests.eventually import eventually
from tests.life_cycle.processes import web_server
from tests.moonhook_server import ROOT, MoonhookServer
from tests.sessions import call, graphql, machine_token

pytestmark = pytest.mark.slow

TOKEN = "a-token-for-prometheus"
SCRIPT = "mutation($n: String!, $s: String!) { createScript(name: $n, source: $s) { id } }"
HOOK = "mutation($id: ID!) { createHook(script: $id) { hook { url } } }"
DEPLOYED = (
    "deploy/grafana/moonhook.json",
    "deploy/prometheus/moonhook.rules.yml",
)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def moonhook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoonhookServer]:
    data_dir = Path(tmp_path_factory.mktemp("data"))
    (data_dir / "metrics").mkdir()
    (data_dir / "metrics" / "counter_1.db").write_bytes(b"of the last start")
    server = MoonhookServer(data_dir, METRICS="on", METRICS_TOKEN=TOKEN, WEB_CONCURRENCY="2")
    with server.running():
        yield server


def scrape(moonhook: MoonhookServer) -> Samples:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    status, content, _ = call("GET", f"{moonhook.url}/metrics", None, bearer)
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(content.decode())
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((name, tuple(sorted(labels.items()))), 0.0)


def hook_of(moonhook: MoonhookServer, token: str, source: str) -> str:
    admin = f"{moonhook.url}/admin/graphql"
    script = graphql(admin, SCRIPT, token, n=uuid.uuid4().hex, s=source)["createScript"]["id"]
    url: str = graphql(admin, HOOK, token, id=script)["createHook"]["hook"]["url"]
    return url


def served_by_both(moonhook: MoonhookServer) -> bool:
    """Connections fall to either worker at random; so many that both have had some."""
    files = list((Path(moonhook.environment["MOONHOOK_DATA_DIR"]) / "metrics").glob("hist*.db"))
    return len([path for path in files if b'"view": "hook"' in path.read_bytes()]) == 2


def test_the_numbers_of_both_workers_add_up(moonhook: MoonhookServer) -> None:
    url = hook_of(moonhook, machine_token(moonhook), 'return "hello"')
    before = scrape(moonhook)
    calls = 0

    def call_until_both_have_served() -> bool:
        nonlocal calls
        assert call("POST", url)[0] == 200
        calls += 1
        return served_by_both(moonhook)

    eventually(call_until_both_have_served)
    scrapes = [scrape(moonhook) for _ in range(4)]

    def more_of(name: str, **labels: str) -> list[float]:
        return [value(each, name, **labels) - value(before, name, **labels) for each in scrapes]

    assert more_of("moonhook_runs_total", status="succeeded", trigger="hook") == [calls] * 4
    assert more_of("moonhook_run_duration_seconds_count", trigger="hook") == [calls] * 4
    assert more_of("moonhook_run_queue_seconds_count") == [calls] * 4
    responses = "django_http_responses_total_by_status_view_method_total"
    assert more_of(responses, status="200", view="hook", method="POST") == [calls] * 4
    assert value(scrapes[0], "moonhook_processes", process="web") == 2
    assert value(scrapes[0], "moonhook_sandbox_slots") == 16
    assert value(scrapes[0], "moonhook_sandbox_slots_in_use") == 0
    assert value(scrapes[0], "moonhook_database_up") == 1
    assert value(scrapes[0], "moonhook_processes", process="jobs") == 1
    assert scrapes[0]["moonhook_queue_depth", (("state", "waiting"),)] == 0
    assert scrapes[0]["moonhook_queue_oldest_seconds", ()] == 0
    assert value(scrapes[0], "moonhook_process_resident_memory_bytes", process="web") > 10_000_000


def test_a_dead_service_is_counted_and_keeps_its_counters(
    moonhook: MoonhookServer,
) -> None:
    url = hook_of(moonhook, machine_token(moonhook, "Initech"), 'return "hello"')
    assert call("POST", url)[0] == 200
    before = scrape(moonhook)
    for_web = {"service": "web server"}
    os.kill(web_server(moonhook), signal.SIGKILL)

    def is_back() -> bool:
        after = scrape(moonhook)
        restarts = "moonhook_service_restarts_total"
        is_counted = value(after, restarts, **for_web) == value(before, restarts, **for_web) + 1
        # The dead workers' slots are no longer among them.
        return is_counted and value(after, "moonhook_sandbox_slots") == 16

    eventually(is_back)
    eventually(lambda: value(scrape(moonhook), "moonhook_processes", process="web") == 2)
    after = scrape(moonhook)
    runs = {"status": "succeeded", "trigger": "hook"}

    assert value(before, "moonhook_service_up", **for_web) == 1
    assert value(after, "moonhook_service_up", **for_web) == 1
    assert value(after, "moonhook_service_up", service="jobs runner") == 1
    assert value(before, "moonhook_runs_total", **runs) > 0
    assert value(after, "moonhook_runs_total", **runs) == value(
        before, "moonhook_runs_total", **runs
    )


def test_every_event_is_counted_once(moonhook: MoonhookServer) -> None:
    token = machine_token(moonhook, "Globex")
    failing = hook_of(moonhook, token, 'error("no")')
    before = scrape(moonhook)
    call("POST", failing)
    call("POST", failing + "x")
    call("PUT", failing)
    wrong = b'{"uid": "x", "password": "y", "credential": "ApiKey", "email": ""}'
    json_body = {"Content-Type": "application/json"}
    call("POST", f"{moonhook.url}/session", wrong, json_body)
    send = b'{"query": "mutation { sendPinCode(email: \\"nobody@example.com\\", sendVia: Email) }"}'
    call("POST", f"{moonhook.url}/user/graphql", send, json_body)
    call("POST", f"{moonhook.url}/user/graphql", send, json_body)
    expected = {
        ("moonhook_runs_total", (("status", "failed"), ("trigger", "hook"))),
        ("moonhook_hook_refusals_total", (("code", "not-found"),)),
        ("moonhook_hook_refusals_total", (("code", "method-not-allowed"),)),
        (
            "moonhook_sessions_refused_total",
            (("credential", "ApiKey"), ("reason", "malformed-secret")),
        ),
        ("moonhook_rate_limited_total", (("action", "pin-send-to"),)),
        ("moonhook_tasks_finished_total", (("status", "successful"), ("task", "deliver_pin"))),
    }

    def counted() -> bool:
        after = scrape(moonhook)
        return {key for key in expected if after.get(key, 0) - before.get(key, 0) == 1} == expected

    eventually(counted)


def test_no_metric_identifies_an_organisation(moonhook: MoonhookServer) -> None:
    labels = {name for _, labels in scrape(moonhook) for name, _ in labels}

    assert labels <= {
        "action", "bulkhead", "channel", "code", "credential", "django", "le", "method", "outcome",
        "process", "python", "reason", "result", "sender", "service", "state", "status", "task",
        "trigger", "type", "version", "view",
    }  # fmt: skip


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", f"Basic {TOKEN}", "Bearer "])
def test_without_the_token_nothing_is_told(
    moonhook: MoonhookServer, authorization: str | None
) -> None:
    headers = {"Authorization": authorization} if authorization is not None else {}
    status, content, answered = call("GET", f"{moonhook.url}/metrics", None, headers)

    assert status == 401
    assert answered["WWW-Authenticate"] == 'Bearer realm="metrics"'
    assert b"moonhook_" not in content


@pytest.mark.parametrize("file", DEPLOYED)
def test_the_dashboard_and_the_rules_name_only_exported_metrics(
    moonhook: MoonhookServer, file: str
) -> None:
    text = (ROOT / file).read_text()
    named = set(re.findall(r"\b((?:moonhook|django_http)_[a-z_]+)\b", text))
    exported = {name for name, _ in scrape(moonhook)} | declared()

    assert len(named) > 5
    assert named - exported == set()


def declared() -> set[str]:
    """Counters with labels that nothing has been counted under yet."""
    files = [ROOT / "core/metrics/instruments.py", *ROOT.glob("*/metrics.py")]
    source = "".join(path.read_text() for path in files)
    names = set(re.findall(r'"((?:moonhook|django_http)_[a-z_]+)"', source))
    return names | {f"{name}_total" for name in names if name.startswith("django_http")}


def test_known_labels_are_those_of_the_code(moonhook: MoonhookServer) -> None:
    samples = scrape(moonhook)

    def labels_of(name: str, label: str) -> set[str]:
        return {dict(labels)[label] for each, labels in samples if each == name}

    assert labels_of("moonhook_runs_total", "status") == set(STATUS_OF.values())
    assert labels_of("moonhook_runs_total", "trigger") == set(Trigger.values)
    assert labels_of("moonhook_sandbox_kills_total", "reason") == set(KillReason)
    assert labels_of("moonhook_sandbox_refusals_total", "reason") == set(BusyReason)
