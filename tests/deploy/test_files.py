"""What images and units promise: as much time to stop as a node takes, and no more rights."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.supervisor import STOP_GRACE_SECONDS

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
# The defaults in production: DRAIN_SECONDS and GRACEFUL_TIMEOUT.
STOP_SECONDS = 5 + 30 + STOP_GRACE_SECONDS

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OURS = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service.get("image") == "moonhook"
}


def test_the_services_are_found() -> None:
    assert set(OURS) == {"migrate", "web-1", "web-2", "worker"}


@pytest.mark.parametrize("name", OURS)
def test_a_container_has_no_more_than_it_needs(name: str) -> None:
    service = OURS[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "ports", "volumes"} & set(service)


@pytest.mark.parametrize("name", OURS)
def test_a_container_has_the_time_to_stop(name: str) -> None:
    assert int(OURS[name]["stop_grace_period"].removesuffix("s")) >= STOP_SECONDS


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_has_the_time_to_stop(unit: Path) -> None:
    seconds = re.findall(r"^TimeoutStopSec=(\d+)$", unit.read_text(), re.MULTILINE)

    assert int(seconds[0]) >= STOP_SECONDS


@pytest.mark.parametrize("name", sorted(set(OURS) - {"migrate"}))
def test_a_container_is_started_again(name: str) -> None:
    assert OURS[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_started_again_however_often_and_loses_one_process_at_a_time(unit: Path) -> None:
    lines = unit.read_text().splitlines()

    assert {"Restart=always", "StartLimitIntervalSec=0", "OOMPolicy=continue"} <= set(lines)
    # systemd kills what is left of a unit whose first process has died, before it starts it again.
    assert "KillMode=mixed" in lines


def test_every_secret_that_a_container_reads_is_given_to_it() -> None:
    service = OURS["web-1"]
    read = {
        value.removeprefix("/run/secrets/")
        for name, value in service["environment"].items()
        if name.endswith("_FILE")
    }

    assert read == set(service["secrets"])
    assert read < set(COMPOSE["secrets"])


def test_the_example_names_settings_that_there_are() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    text = (DEPLOY / "moonhook.env.example").read_text()
    names = set(re.findall(r"^([A-Z_]+)=", text, re.MULTILINE))

    # Caddy's, not ours.
    assert {name for name in names if f"`{name}`" not in page} == {"PUBLIC_HOST"}


def test_neither_secrets_nor_history_get_into_an_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()

    assert {".git", "deploy", "var", ".venv"} <= set(ignored)
