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


def blocks(language: str) -> list[str]:
    text = (CLIENT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readme_leads_from_a_first_script_to_production_and_back(
    client: Client, server: Server, organisation_name: str
) -> None:
    script, (first, environments, *_) = blocks("lua")[0], blocks("toml")
    names = {"staging": f"{organisation_name} staging", "production": organisation_name}
    keys = {name: server.make_key(server.make_organisation(org)) for name, org in names.items()}
    client.log_in(server, keys["production"])
    client.log_in(server, keys["staging"], "--profile", "staging")
    client.log_in(server, keys["production"], "--profile", "production")
    client.ok("init")
    client.ok("pull")
    client.write("scripts/sum.lua", script)
    client.write("moonhook.toml", client.read("moonhook.toml") + "\n" + first)
    assert "+local order = params.json()" in client.ok("diff")
    assert "/hook/" in client.ok("push", "--yes", "--note", "Add up orders")
    assert '{"total":42}' in client.ok("run", "scripts/sum.lua", "--body", '{"a": 1, "b": 41}')

    client.write("libraries/tea.lua", "return {price = 4}\n")
    client.write("scripts/price.lua", 'return require("tea").price\n')
    told = environments.replace('"Acme', f'"{organisation_name}')
    added = "\n[scripts.price]\nenabled = true\n\n[libraries.tea]\n\n"
    client.write("moonhook.toml", client.read("moonhook.toml") + added + told)
    in_shell(
        client, "git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm 1"
    )
    for name in names:
        client.ok("push", "--to", name, "--yes")
        client.ok("push", "--to", name, "--check")
    client.write("scripts/price.lua", 'return require("tea").price + 1\n')
    client.ok("push", "--to", "production", "--yes")
    number = client.json("releases", "--profile", "production")[0]["number"]
    client.ok("releases", "undo", str(number), "--yes", "--profile", "production")
    client.ok("pull", "--from", "production")

    assert in_shell(client, "git status --short") == ""
