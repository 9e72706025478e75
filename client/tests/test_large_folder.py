"""A folder of many scripts: few requests, nothing changes twice, and half a release never shows."""

import pytest
from conftest import Client
from large_folder import SCRIPTS, write_folder

SMALL = 20
# What is live, which sources are missing, the plan.
REQUESTS = 3


def requests_of(client: Client, *arguments: str) -> int:
    done = client.run(*arguments, "--debug")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr.count("debug: POST ")


@pytest.mark.parametrize("scripts", [SMALL, pytest.param(SCRIPTS, marks=pytest.mark.slow)])
def test_many_scripts_are_pushed_and_pulled_and_twice_changes_nothing(
    logged_in: Client, other_client: Client, scripts: int
) -> None:
    objects = write_folder(logged_in.folder, scripts)
    text = logged_in.read("moonhook.toml")

    # Besides: the sources, the release, and what is live then.
    assert requests_of(logged_in, "push", "--yes") == REQUESTS + 3
    assert len(logged_in.json("releases")[0]["changes"]) == objects
    assert requests_of(logged_in, "push", "--yes") == REQUESTS
    assert requests_of(logged_in, "push", "--check") == REQUESTS
    assert requests_of(logged_in, "diff") == REQUESTS
    assert requests_of(logged_in, "pull") == 1 + scripts // 100 + 1
    assert logged_in.json("pull") == []
    assert logged_in.read("moonhook.toml") == text
    assert len(logged_in.json("releases")) == 1

    other_client.ok("init")
    other_client.ok("pull")
    other_client.ok("push", "--check")
    assert other_client.json("pull") == []
    write_folder(logged_in.folder, scripts, edition=2)
    logged_in.ok("push", "--yes")
    assert len(other_client.json("pull")) == scripts
    other_client.ok("push", "--check")
