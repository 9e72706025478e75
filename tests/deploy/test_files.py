"""What images and units promise: as much time to stop as a node takes, and no more rights."""

import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from core.server.supervisor import STOP_GRACE_SECONDS
from hooks.flows.run_call import LONGEST_CALL_SECONDS
from scripts_engine.management.commands.check_sandbox import host_attacks
from scripts_engine.sandbox import child_attacks, pair_attacks, script_attacks

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
# The defaults in production: DRAIN_SECONDS and GRACEFUL_TIMEOUT.
STOP_SECONDS = 5 + settings.GRACEFUL_TIMEOUT_SECONDS + STOP_GRACE_SECONDS

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OURS = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service.get("image") == "moonhook"
}


def test_the_services_are_found() -> None:
    assert set(OURS) == {"migrate", "web-1", "web-2", "jobs"}


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


def test_the_documentation_says_how_long_a_node_takes_to_stop() -> None:
    page = (ROOT / "docs" / "operate.md").read_text()

    assert f"A service manager must allow {STOP_SECONDS} s before" in page


def test_nginx_waits_for_the_longest_call() -> None:
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", (DEPLOY / "nginx.conf").read_text())

    assert int(seconds) > settings.GRACEFUL_TIMEOUT_SECONDS > LONGEST_CALL_SECONDS


@pytest.mark.parametrize("name", sorted(set(OURS) - {"migrate"}))
def test_a_container_is_started_again(name: str) -> None:
    assert OURS[name]["restart"] == "unless-stopped"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_always_restarted_and_loses_one_process_at_a_time(unit: Path) -> None:
    lines = unit.read_text().splitlines()

    assert {"Restart=always", "StartLimitIntervalSec=0", "OOMPolicy=continue"} <= set(lines)
    # systemd kills what is left of a unit whose first process has died, before it starts it again.
    assert "KillMode=mixed" in lines


def test_every_secret_that_a_container_reads_is_mounted() -> None:
    service = OURS["web-1"]
    read = {
        value.removeprefix("/run/secrets/")
        for name, value in service["environment"].items()
        if name.endswith("_FILE")
    }

    assert read == set(service["secrets"])
    assert read < set(COMPOSE["secrets"])


def test_only_our_own_containers_get_our_settings_and_secrets() -> None:
    others = {name: each for name, each in COMPOSE["services"].items() if name not in OURS}
    given = {
        name: (set(each.get("environment", {})), set(each.get("secrets", [])))
        for name, each in others.items()
    }

    assert [name for name, each in others.items() if "env_file" in each] == []
    assert given == {
        "caddy": ({"PUBLIC_HOST"}, set()),
        "postgres": (
            {"POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD_FILE"},
            {"postgres_password"},
        ),
    }


def test_the_proxys_configuration_uses_its_variables() -> None:
    read = set(re.findall(r"\{\$(\w+)", (DEPLOY / "Caddyfile").read_text()))

    assert read == set(COMPOSE["services"]["caddy"]["environment"])


def test_the_example_names_settings_that_there_are() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    text = (DEPLOY / "moonhook.env.example").read_text()
    names = set(re.findall(r"^([A-Z_]+)=", text, re.MULTILINE))

    assert {name for name in names if f"`{name}`" not in page} == set()


def test_neither_secrets_nor_history_get_into_an_image() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()

    assert {".git", "deploy", "var", ".venv"} <= set(ignored)


def is_ignored(path: Path) -> bool:
    """As Docker reads .dockerignore: a pattern names a path from the root, with its contents."""
    name = path.relative_to(ROOT).as_posix()
    return any(
        fnmatch(name, start) or fnmatch(name, f"{start}/*")
        for line in (ROOT / ".dockerignore").read_text().split()
        for start in ({line, line.removeprefix("**/")} if line.startswith("**/") else {line})
    )


def test_the_image_contains_all_scripts_of_check_sandbox() -> None:
    instructions = (ROOT / "Dockerfile").read_text().splitlines()
    command = ROOT / "scripts_engine/management/commands/check_sandbox.py"
    suite = list((ROOT / "scripts_engine/sandbox/attacks").rglob("*.lua"))

    assert is_ignored(ROOT / "tests/conftest.py")
    assert len(suite) >= 9
    assert [path for path in (command, *suite) if is_ignored(path)] == []
    assert len(script_attacks()) >= 152
    assert {"COPY . .", "COPY --from=build /app /app"} <= set(instructions)


def test_the_number_of_attacks_in_the_documentation_is_right() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()

    every = (script_attacks, pair_attacks, child_attacks, host_attacks)
    count = sum(len(attacks()) for attacks in every)
    assert re.findall(r"with (\d+) attacks", page) == [str(count)]
