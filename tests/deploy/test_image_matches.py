"""compose.yaml and the units use the image and the checkout as the Dockerfile makes them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands
from django.urls import resolve

from config.management.commands.serve import services
from tests.deploy.test_files import COMPOSE, DEPLOY, OURS, ROOT, UNITS

DOCKERFILE = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
STAGES = DOCKERFILE.split("\nFROM ")
FINAL = STAGES[-1]


def instruction(name: str) -> str:
    """The arguments of the last such instruction in the final stage."""
    return re.findall(rf"^{name} (.+)$", FINAL, re.MULTILINE)[-1]


def environment() -> dict[str, str]:
    return dict(re.findall(r"([A-Z_]+)=(\S+)", instruction("ENV")))


def is_known(command: list[str]) -> bool:
    """Whether `manage.py` has the command, and `serve` its services."""
    name, *arguments = command
    words = [each for each in arguments if not each.startswith("--")]
    return name in get_commands() and (name != "serve" or set(words) <= set(services()))


def test_both_stages_are_the_same_debian_and_python() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)

    assert bases == ["python:3.13-slim-trixie"] * 2


def test_the_image_runs_manage_py_as_its_own_user() -> None:
    user = re.search(r"useradd .*--uid (\d+) .*--shell /usr/sbin/nologin (\w+)", FINAL)

    assert user is not None
    assert instruction("USER") == user[2]
    assert (
        f"install -d -o {user[2]} -g {user[2]} -m 700 {environment()['MOONHOOK_DATA_DIR']}" in FINAL
    )
    assert instruction("VOLUME") == environment()["MOONHOOK_DATA_DIR"]
    assert json.loads(instruction("ENTRYPOINT")) == ["/venv/bin/python", "manage.py"]
    assert "COPY --from=build /venv /venv" in FINAL
    assert instruction("WORKDIR") == "/app"
    assert environment()["STATIC_ROOT"] == "/app/static"
    assert "STATIC_ROOT=/app/static" in STAGES[0] + STAGES[1]


def test_the_image_s_own_command_is_a_web_node() -> None:
    command = json.loads(instruction("CMD"))

    assert command == ["serve", "web", "--no-migrate"]
    assert is_known(command)


def test_the_health_check_asks_a_path_that_there_is() -> None:
    check = re.findall(r"HEALTHCHECK .*CMD (\[.+\])", FINAL)[0]
    program, option, script = json.loads(check)
    path = re.findall(r"\{os\.environ\[\"PORT\"\]\}(/\w+)'", script)[0]

    assert (program, option) == ("/venv/bin/python", "-c")
    compile(script, "health check", "exec")
    assert resolve(path) is not None
    assert instruction("EXPOSE") == environment()["PORT"]
    assert "127.0.0.1" in (DEPLOY / "moonhook.env.example").read_text()


@pytest.mark.parametrize("name", OURS)
def test_a_container_s_command_is_one_of_manage_py(name: str) -> None:
    assert is_known(OURS[name]["command"])
    assert not {"entrypoint", "user", "working_dir"} & set(OURS[name])


@pytest.mark.parametrize("name", OURS)
def test_a_container_can_write_its_data_directory(name: str) -> None:
    uid = re.findall(r"--uid (\d+)", FINAL)[0]
    gid = re.findall(r"--gid (\d+)", FINAL)[0]
    data = environment()["MOONHOOK_DATA_DIR"]

    assert f"{data}:uid={uid},gid={gid},mode=0700" in OURS[name]["tmpfs"]
    assert "/tmp" in OURS[name]["tmpfs"]


@pytest.mark.parametrize("name", OURS)
def test_only_containers_that_listen_are_asked_for_their_health(name: str) -> None:
    is_web = "web" in OURS[name]["command"]

    assert (OURS[name].get("healthcheck") == {"disable": True}) is not is_web


def test_the_proxy_asks_the_port_of_the_image() -> None:
    caddyfile = (DEPLOY / "Caddyfile").read_text()
    web = sorted(name for name in OURS if "web" in OURS[name]["command"])

    assert " ".join(f"{name}:{environment()['PORT']}" for name in web) in caddyfile


def test_the_image_is_built_from_the_root_of_the_checkout() -> None:
    contexts = {(DEPLOY / service["build"]["context"]).resolve() for service in OURS.values()}

    assert contexts == {ROOT}
    assert yaml.safe_load((DEPLOY / "compose.yaml").read_text()) == COMPOSE


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_runs_what_the_documentation_installs(unit: Path) -> None:
    lines: Any = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line)
    program, script, *command = lines["ExecStart"].split()
    page = (ROOT / "docs" / "deploy.md").read_text()

    assert (program, script) == (f"{lines['WorkingDirectory']}/.venv/bin/python", "manage.py")
    assert is_known(command)
    assert lines["User"] == lines["Group"] == instruction("USER")
    assert (
        f"useradd --system --home-dir /nonexistent --shell /usr/sbin/nologin {lines['User']}"
        in page
    )
    assert f"git clone … {lines['WorkingDirectory']}" in page
    assert "MOONHOOK_DATA_DIR=/var/lib/moonhook" in unit.read_text()
    assert lines["StateDirectory"] == "moonhook"
