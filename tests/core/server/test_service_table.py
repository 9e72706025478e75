"""The services of a node, as its web workers report them."""

from collections.abc import Iterator

import pytest
from django.test import Client

from core.metrics.services import ServiceCollector
from core.server.service_table import COULD_NOT_START, ServiceTable, services_of_this_node

ALL_RUN = {"web server": "running", "background worker": "running"}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceTable]:
    """Returns a supervisor's table of two running services, which this process has inherited."""
    table = ServiceTable.create(list(ALL_RUN))
    table["web server"].is_up = table["background worker"].is_up = 1
    for name, value in table.environment("web server").items():
        monkeypatch.setenv(name, value)
    services_of_this_node.cache_clear()
    yield table
    services_of_this_node.cache_clear()


def samples() -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels["service"]): sample.value
        for metric in ServiceCollector().collect()
        for sample in metric.samples
    }


def test_services_that_run_are_named(client: Client, db: None, table: ServiceTable) -> None:
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "status": "ok",
        "checks": {"database": "ok", "sandbox": "ok", "queue": "ok"},
        "services": ALL_RUN,
    }


@pytest.mark.parametrize(
    ("last_exit", "reason"),
    [
        (-9, "killed-by-sigkill"),
        (-40, "killed-by-signal-40"),
        (0, "exit-status-0"),
        (1, "exit-status-1"),
        (COULD_NOT_START, "could-not-start"),
    ],
)
def test_a_dead_background_worker_degrades_readiness_without_failing_it(
    client: Client, db: None, table: ServiceTable, last_exit: int, reason: str
) -> None:
    table["background worker"].is_up = 0
    table["background worker"].last_exit = last_exit
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "sandbox": "ok", "queue": "ok"},
        "services": ALL_RUN | {"background worker": "down"},
        "reasons": {"background worker": reason},
    }


@pytest.mark.parametrize(("deaths", "condition"), [(2, "running"), (3, "unstable")])
def test_a_service_that_dies_repeatedly_is_unstable(
    client: Client, db: None, table: ServiceTable, deaths: int, condition: str
) -> None:
    table["background worker"].deaths_in_a_row = deaths
    table["background worker"].last_exit = 1
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["services"]["background worker"] == condition


def test_services_are_counted(table: ServiceTable) -> None:
    table["background worker"].is_up = 0
    table["background worker"].restarts = 7

    assert samples() == {
        ("moonhook_service_up", "web server"): 1,
        ("moonhook_service_up", "background worker"): 0,
        ("moonhook_service_restarts_total", "web server"): 0,
        ("moonhook_service_restarts_total", "background worker"): 7,
    }


def test_a_server_without_a_supervisor_has_no_services() -> None:
    assert samples() == {}
