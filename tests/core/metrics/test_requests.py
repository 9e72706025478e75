"""The counts of the middleware, from a process with metrics on: they are off in the tests."""

import os
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.moonhook_server import ROOT

REQUESTS = """
import django
django.setup()
from tests.client import Client
from config.operations import readiness

def fail():
    raise RuntimeError("not ready")

readiness.is_draining = fail
client = Client(raise_request_exception=False)
client.get("/healthz")
client.get("/healthz")
client.generic("BREW", "/healthz")
client.get("/nowhere")
client.get("/readyz")
client.get("/session")
client.head("/session")
client.put("/hook/a/b/c")
client.get("/hook/a/b")
client.post("/hook/secure/a/b", headers={"Host": "elsewhere.example"})
print(client.get("/metrics").content.decode())
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], float]:
    """Maps each metric's name and label values, ordered by label name, to its value."""
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "MOONHOOK_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "ALLOWED_HOSTS": "testserver",
        "METRICS": "on",
    }
    finished = subprocess.run(
        [sys.executable, "-c", REQUESTS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(finished.stdout)
        for sample in family.samples
    }


RESPONSES = "django_http_responses_total_by_status_view_method_total"


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        (("GET", "200", "healthz"), 2),
        (("<invalid method>", "405", "healthz"), 1),
        (("GET", "404", "<unnamed view>"), 1),
        (("GET", "500", "readyz"), 1),
        (("GET", "401", "session"), 1),
        (("HEAD", "401", "session"), 1),
        (("PUT", "405", "hook"), 1),
        (("GET", "404", "hooks.views.no_such_hook"), 1),
        (("POST", "400", "<unnamed view>"), 1),
    ],
)
def test_responses_are_counted_by_method_status_and_view(
    samples: dict[tuple[str, ...], float], labels: tuple[str, ...], count: float
) -> None:
    assert samples[RESPONSES, *labels] == count


def test_durations_are_counted_by_method_and_view(samples: dict[tuple[str, ...], float]) -> None:
    name = "django_http_requests_latency_seconds_by_view_method"

    assert samples[f"{name}_count", "GET", "healthz"] == 2
    assert 0 < samples[f"{name}_sum", "GET", "healthz"] < 60
    assert samples[f"{name}_count", "PUT", "hook"] == 1


def test_exceptions_are_counted_by_type(samples: dict[tuple[str, ...], float]) -> None:
    assert samples["django_http_exceptions_total_by_type_total", "RuntimeError"] == 1
