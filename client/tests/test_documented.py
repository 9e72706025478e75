"""The commands of the quickstart and of the CI examples do what they say."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import MOONHOOK, Client
from server import Key, Server

CLIENT = Path(__file__).parents[1]
QUICKSTART = CLIENT.parent / "docs" / "quickstart.md"
EXAMPLES = CLIENT / "examples"
STEP = re.compile(r"^ *- (?:run: )?(moonhook .*)$", re.MULTILINE)


def in_shell(client: Client, commands: str, **environment: str) -> str:
    path = f"{Path(MOONHOOK).parent}:{client.environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=client.folder,
        env=client.environment | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_quickstart_prints_what_it_says(client: Client, server: Server, key: Key) -> None:
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", QUICKSTART.read_text(), re.DOTALL))
    expected = [line.removeprefix("# ") for line in commands.splitlines() if line[:2] == "# "]

    document = f'{{"key": "{key.key}", "secret": "{key.secret}"}}'
    printed = in_shell(client, f"key='{document}'\n{commands}", BASE=server.url)

    assert len(expected) >= 2
    for line in expected:
        assert line in printed


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_steps_of_a_ci_example_run(
    client: Client, server: Server, key: Key, organisation_name: str, name: str
) -> None:
    steps = STEP.findall((EXAMPLES / name).read_text())
    environment = {
        "MOONHOOK_URL": server.url,
        "MOONHOOK_KEY": key.key,
        "MOONHOOK_SECRET": key.secret,
        "GITHUB_SHA": "4f2c9e1",
        "CI_COMMIT_SHA": "4f2c9e1",
    }
    client.ok("init")
    client.write("scripts/sum.lua", "return 1\n")
    settings = f'[env.production]\norganisation = "{organisation_name}"\n'
    client.write("moonhook.toml", f'[scripts.sum]\n\n{settings}enabled = ["scripts/sum"]\n')

    printed = in_shell(client, "\n".join(steps), **environment)

    assert len(steps) == 3
    assert key.secret not in printed
    client.log_in(server, key)
    releases = client.json("releases")
    assert [release["note"] for release in releases] == ["4f2c9e1"]
