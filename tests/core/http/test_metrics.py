"""Access to /metrics."""

import os
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.test import Client, override_settings

from tests.moonhook_server import PRODUCTION_SECRETS, ROOT

PRODUCTION = {
    "MOONHOOK_ENV": "production",
    **PRODUCTION_SECRETS,
    "PUBLIC_URL": "https://hooks.example.com",
    "EMAIL_URL": "smtp://127.0.0.1:1",
    "SMS_URL": "off",
}
PRINT = (
    "from config import settings as s; "
    "print(s.ARE_METRICS_ON, *s.METRICS_NETWORKS, s.MIDDLEWARE[0].endswith('RequestMetrics'))"
)


def settings_under(**environment: str) -> tuple[int, str]:
    """Returns the exit status and the output of a process that reads the settings."""
    finished = subprocess.run(
        [sys.executable, "-c", PRINT],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.returncode, finished.stdout + finished.stderr


def test_metrics_that_are_off_are_not_found(client: Client) -> None:
    response = client.get("/metrics")

    assert (response.status_code, response.json()["code"]) == (404, "not-found")


def test_another_network_finds_nothing(client: Client) -> None:
    with override_settings(ARE_METRICS_ON=True, METRICS_NETWORKS=[ip_network("10.0.0.0/8")]):
        response = client.get("/metrics")

    assert (response.status_code, response.json()["code"]) == (404, "not-found")


def test_another_network_finds_nothing_even_with_the_token(client: Client) -> None:
    with override_settings(
        ARE_METRICS_ON=True, METRICS_NETWORKS=[ip_network("10.0.0.0/8")], METRICS_TOKEN="x" * 20
    ):
        response = client.get("/metrics", headers={"Authorization": f"Bearer {'x' * 20}"})

    assert response.status_code == 404


def test_an_allowed_network_still_needs_the_token(client: Client) -> None:
    with override_settings(
        ARE_METRICS_ON=True, METRICS_NETWORKS=[ip_network("127.0.0.0/8")], METRICS_TOKEN="x" * 20
    ):
        response = client.get("/metrics")

    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="metrics"')


def test_production_does_not_start_with_public_metrics() -> None:
    status, said = settings_under(**PRODUCTION, METRICS="on")

    assert status == 1
    assert "METRICS=on needs METRICS_TOKEN or METRICS_NETWORKS" in said


@pytest.mark.parametrize(
    ("protection", "printed"),
    [
        ({"METRICS_TOKEN": "a-long-enough-token"}, "True True"),
        ({"METRICS_NETWORKS": "10.0.0.0/8"}, "True 10.0.0.0/8 True"),
    ],
)
def test_either_protection_is_enough(protection: dict[str, str], printed: str) -> None:
    assert settings_under(**PRODUCTION, METRICS="on", **protection) == (0, f"{printed}\n")


def test_a_short_token_is_refused() -> None:
    status, said = settings_under(**PRODUCTION, METRICS="on", METRICS_TOKEN="short")

    assert status == 1
    assert "METRICS_TOKEN must have at least 16 characters" in said


def test_development_allows_the_local_machine(tmp_path: Path) -> None:
    printed = "True 127.0.0.0/8 ::1/128 True\n"

    assert settings_under(METRICS="on", MOONHOOK_DATA_DIR=str(tmp_path)) == (0, printed)


def test_metrics_that_are_off_add_no_middleware() -> None:
    assert settings_under(**PRODUCTION) == (0, "False False\n")
