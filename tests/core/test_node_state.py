"""The services of a node, as its web workers report them."""

import pytest
from django.test import Client

from core import node_state
from core.metrics.exposition import ServiceCollector
from core.node_state import COULD_NOT_START, ServiceTable, join

ALL_RUN = {"web server": "running", "jobs runner": "running"}


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ServiceTable:
    """Returns a supervisor's table of two running services, one of which this process is."""
    monkeypatch.setattr(node_state, "_table", None)
    monkeypatch.setattr(node_state, "_own_state", None)
    table = ServiceTable(list(ALL_RUN))
    table["web server"].is_up = table["jobs runner"].is_up = 1
    join(table, "web server")
    return table


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
    table["jobs runner"].is_up = 0
    table["jobs runner"].last_exit = last_exit
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json() == {
        "status": "degraded",
        "checks": {"database": "ok", "sandbox": "ok", "queue": "ok"},
        "services": ALL_RUN | {"jobs runner": "down"},
        "reasons": {"jobs runner": reason},
    }


@pytest.mark.parametrize(("deaths", "condition"), [(2, "running"), (3, "unstable")])
def test_a_service_that_dies_repeatedly_is_unstable(
    client: Client, db: None, table: ServiceTable, deaths: int, condition: str
) -> None:
    table["jobs runner"].deaths_in_a_row = deaths
    table["jobs runner"].last_exit = 1
    response = client.get("/readyz")

    assert response.status_code == 200
    assert response.json()["services"]["jobs runner"] == condition


def test_services_are_counted(table: ServiceTable) -> None:
    table["jobs runner"].is_up = 0
    table["jobs runner"].restarts = 7

    assert samples() == {
        ("moonhook_service_up", "web server"): 1,
        ("moonhook_service_up", "jobs runner"): 0,
        ("moonhook_service_restarts_total", "web server"): 0,
        ("moonhook_service_restarts_total", "jobs runner"): 7,
    }


def test_a_server_without_a_supervisor_has_no_services() -> None:
    assert samples() == {}
