"""run, watch, runs, refused, hooks, secrets, schedules, releases, keys, completion."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from conftest import MOONHOOK, Client
from server import Key, Server

SETTINGS = '[scripts.sum]\nenabled = true\n\n[hooks."sum/orders"]\nenabled = true\n'
SUM = "local order = params.json()\nlog.info('adding')\nreturn {total = order.a + order.b}\n"


@pytest.fixture
def pushed(logged_in: Client) -> Client:
    logged_in.ok("init")
    logged_in.write("moonhook.toml", SETTINGS)
    logged_in.write("scripts/sum.lua", SUM)
    issued = logged_in.json("push", "--yes")["issuedHooks"]
    logged_in.write("url", issued[0]["hook"]["url"])
    return logged_in


def call_hook(client: Client, body: str, **headers: str) -> int:
    request = urllib.request.Request(client.read("url"), body.encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return refusal.code


def listed_runs(client: Client, *options: str, count: int) -> list[Any]:
    """Runs are written after the answer: waits until there are so many."""
    while len(found := client.json("runs", *options)) < count:
        time.sleep(0.1)
    return list(found)


def test_a_local_file_runs_without_being_saved(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", SUM.replace("order.a + order.b", "order.a * order.b"))

    done = pushed.run("run", "scripts/sum.lua", "--body", '{"a": 6, "b": 7}')

    assert done.returncode == 0, done.stderr
    assert '{"total":42}' in done.stdout
    assert "adding" in done.stdout
    assert done.stderr.startswith("Effects are real")
    assert len(pushed.json("releases")) == 1


def test_an_event_comes_from_a_file_or_from_standard_input(pushed: Client) -> None:
    pushed.write(
        "scripts/sum.lua",
        "return params.get('method') .. params.get('query') .. params.header('X-Shop')\n",
    )
    pushed.write(
        "event.json",
        '{"method": "PUT", "query": "page=2", "headers": {"X-Shop": "tea"}, "body": {"a": 1}}',
    )
    by_file = pushed.json("run", "scripts/sum.lua", "--event", "event.json")
    pushed.write("scripts/sum.lua", "return params.get('body')\n")
    by_input = pushed.json("run", "scripts/sum.lua", "--body", "-", stdin="typed")

    assert by_file["responseBody"] == "PUTpage=2tea"
    assert by_file["requestBody"] == '{"a": 1}'
    assert by_input["responseBody"] == "typed"


def test_a_recorded_event_runs_again(pushed: Client) -> None:
    assert call_hook(pushed, '{"a": 1, "b": 41}') == 200
    recorded = listed_runs(pushed, count=1)[0]

    again = pushed.json("run", "scripts/sum.lua", "--from-run", recorded["id"])

    assert again["responseBody"] == '{"total":42}'


def test_a_recorded_event_has_its_headers_and_tells_those_that_are_hidden(pushed: Client) -> None:
    headers = {"X-Shop": "tea", "Authorization": "Basic eA=="}
    assert call_hook(pushed, '{"a": 1, "b": 41}', **headers) == 200
    recorded = listed_runs(pushed, count=1)[0]
    source = "return params.header('X-Shop') .. (params.header('Authorization') or ', no more')\n"
    pushed.write("scripts/sum.lua", source)

    again = pushed.run("run", "scripts/sum.lua", "--from-run", recorded["id"])

    assert "tea, no more\n" in again.stdout
    assert "Without headers that may be credentials: Authorization." in again.stderr


def test_an_error_is_shown_as_a_compiler_shows_it(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "local order = {}\nreturn order.items.first\n")

    output = pushed.fails(1, "run", "scripts/sum.lua")

    assert "scripts/sum.lua:2: attempt to index a nil value (field 'items')" in output
    assert " 2 | return order.items.first\n   |              ^^^^^\n" in output


def test_an_error_in_a_library_names_its_file(pushed: Client) -> None:
    pushed.write("moonhook.toml", SETTINGS + '[libraries.money]\nname = "The money"\n')
    library = "local M = {}\nfunction M.f()\n  return nothing.x\nend\nreturn M\n"
    pushed.write("libraries/money.lua", library)
    pushed.ok("push", "--yes")
    pushed.write("scripts/sum.lua", 'return require("The money").f()\n')

    output = pushed.fails(1, "run", "scripts/sum.lua")

    assert "differs from what is live" not in output

    assert "libraries/money.lua:3: attempt to index a nil value (global 'nothing')" in output
    assert " 3 |   return nothing.x\n   |          ^^^^^^^\n" in output
    assert "is not a script" in pushed.fails(1, "run", "libraries/money.lua")


def test_a_library_that_differs_from_the_live_one_is_told(pushed: Client) -> None:
    pushed.write("libraries/money.lua", "return 1\n")
    pushed.write("libraries/tea.lua", 'return require "money"\n')
    pushed.ok("push", "--yes")
    pushed.write("libraries/money.lua", "return 2\n")
    pushed.write("scripts/sum.lua", "return require('tea')\n")

    done = pushed.run("run", "scripts/sum.lua")

    assert (
        "libraries/money.lua differs from what is live; the run uses what is live." in done.stderr
    )
    assert "libraries/tea.lua" not in done.stderr
    assert done.stdout.endswith("\n1\n")


def test_times_in_tables_are_short(pushed: Client) -> None:
    assert re.search(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ ", pushed.ok("releases"))


def test_a_source_that_does_not_compile_names_the_line(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "local x =\nreturn (\n")

    output = pushed.fails(1, "run", "scripts/sum.lua")

    assert "scripts/sum.lua:2: " in output
    assert " 2 | return (\n" in output


def test_a_file_outside_the_folder_is_not_run(pushed: Client) -> None:
    pushed.write("../other.lua", "return 1\n")

    assert "is outside" in pushed.fails(1, "run", "../other.lua")


def test_a_script_that_the_server_does_not_have_says_what_to_do(pushed: Client) -> None:
    pushed.write("scripts/new.lua", "return 1\n")

    assert "moonhook push --draft" in pushed.fails(1, "run", "scripts/new.lua")


def test_watch_runs_a_file_at_each_save(pushed: Client) -> None:
    process = pushed.start("watch", "scripts/sum.lua", "--body", '{"a": 1, "b": 1}')
    assert process.stdout is not None
    lines = process.stdout
    try:
        assert "Effects are real" in lines.readline()
        first = [lines.readline() for _ in range(3)]
        pushed.write("scripts/sum.lua", "return 'saved'\n")
        second = [lines.readline() for _ in range(2)]
    finally:
        process.kill()
        process.communicate()

    assert first[2] == '{"total":2}\n'
    assert second[1] == "saved\n"


def test_failed_runs_are_listed_shown_replayed_and_retried(pushed: Client) -> None:
    assert call_hook(pushed, '{"a": 1, "b": 1}') == 200
    assert call_hook(pushed, '{"a": 1}') == 500
    listed_runs(pushed, count=2)

    failed = pushed.json("runs", "--failed", "--hook", "sum/orders")
    assert [run["status"] for run in failed] == ["Failed"]
    run_id = failed[0]["id"]
    assert "arithmetic" in pushed.ok("runs", "show", run_id)
    assert pushed.json("runs", "replay", run_id) == {"queued": 1}

    pushed.write("scripts/sum.lua", "return 'mended'\n")
    pushed.ok("push", "--yes")
    assert "mended" in pushed.ok("runs", "retry", run_id)
    unknown = "00000000-0000-0000-0000-000000000000"
    assert "There is no such object" in pushed.fails(1, "runs", "show", unknown)


def test_follow_tells_each_run_once(pushed: Client) -> None:
    assert call_hook(pushed, '{"a": 1, "b": 1}') == 200
    listed_runs(pushed, count=1)
    process = pushed.start("runs", "--follow", "--json")
    assert process.stdout is not None
    try:
        first = json.loads(process.stdout.readline())
        assert call_hook(pushed, '{"a": 1}') == 500
        second = json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()

    assert (first["status"], second["status"]) == ("Succeeded", "Failed")


def test_followed_runs_have_short_times(pushed: Client) -> None:
    assert call_hook(pushed, '{"a": 1, "b": 1}') == 200
    listed_runs(pushed, count=1)
    process = pushed.start("runs", "--follow")
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
    finally:
        process.kill()
        process.communicate()

    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ  Succeeded  sum  orders  ", line)


def test_refused_calls_say_what_to_do(pushed: Client) -> None:
    url = pushed.read("url")
    pushed.write("url", url[:-1] + ("a" if url[-1] != "a" else "b"))
    assert call_hook(pushed, "{}") == 404
    while not (rows := pushed.json("refused", "--details")):
        time.sleep(0.1)

    assert rows[0]["reason"] == "WrongToken"


def test_a_hook_is_created_and_rotated(pushed: Client) -> None:
    created = pushed.json("hooks", "create", "sum", "--name", "shop")
    rotated = pushed.json("hooks", "rotate", "sum/shop")

    assert created["callToken"] != rotated["callToken"]
    listed = pushed.ok("hooks", "list")
    assert "shop" in listed
    assert rotated["callToken"] not in listed
    assert "There is no hook" in pushed.fails(1, "hooks", "rotate", "sum/none")


def test_a_hook_gets_a_test_event(pushed: Client, server: Server, key: Key) -> None:
    pushed.write("scripts/sum.lua", "return params.get('trigger')\n")
    pushed.ok("push", "--yes")

    assert pushed.json("hooks", "test", "sum/orders")["trigger"] == "test"


def test_a_secret_is_set_from_standard_input_and_never_shown(logged_in: Client) -> None:
    value = "tea-4711-secret"
    done = logged_in.run("secrets", "set", "SHOP", "--debug", stdin=f"{value}\n")

    assert done.returncode == 0, done.stderr
    assert value not in done.stdout + done.stderr
    assert [row["name"] for row in logged_in.json("secrets", "list")] == ["SHOP"]
    logged_in.ok("secrets", "delete", "SHOP")
    assert logged_in.json("secrets", "list") == []


def test_a_value_on_the_command_line_is_refused(logged_in: Client) -> None:
    logged_in.fails(1, "secrets", "set", "SHOP", "value")

    assert logged_in.json("secrets", "list") == []


def test_a_secret_is_not_among_the_arguments_of_the_process(
    client: Client, server: Server, key: Key
) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [MOONHOOK, "login", server.url, "--api-key"],
        cwd=client.folder, env=client.environment, stdin=reader,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
        pipe.write(f"{key.key}\n{key.secret}\n")
    assert process.wait(timeout=60) == 0

    assert key.secret not in arguments


def test_a_release_is_undone(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return 2\n")
    pushed.ok("push", "--yes", "--note", "worse")

    assert "worse  Update Script sum" in pushed.ok("releases")
    assert "Add --yes" in pushed.fails(1, "releases", "undo", "2")
    made = pushed.json("releases", "undo", "2", "--yes")

    assert made["number"] == 3
    pushed.ok("pull")
    assert pushed.read("scripts/sum.lua") == SUM


def test_schedules_and_keys_are_listed(pushed: Client, key: Key) -> None:
    schedule = '\n[schedules.nightly]\nscript = "sum"\ncron = "0 3 * * *"\nenabled = true\n'
    pushed.write("moonhook.toml", SETTINGS + schedule)
    pushed.ok("push", "--yes")

    assert pushed.json("schedules")[0]["name"] == "nightly"
    assert key.key in pushed.ok("keys")


def test_a_missing_scope_is_named(client: Client, server: Server, organisation: str) -> None:
    client.log_in(server, server.make_key(organisation, "ReadScripts"))

    assert "that has the scopes: ReadKeys" in client.fails(3, "keys")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(client: Client, shell: str) -> None:
    script = client.ok("completion", shell)

    assert "_MOONHOOK_COMPLETE" in script


def test_completion_offers_commands(client: Client) -> None:
    offered = client.run(
        _MOONHOOK_COMPLETE="fish_complete", COMP_WORDS="moonhook re", COMP_CWORD="re"
    ).stdout

    assert "releases" in offered


@pytest.mark.parametrize("arguments", [(), ("hooks",)], ids=["moonhook", "hooks"])
def test_without_a_command_its_help_is_shown(client: Client, arguments: tuple[str, ...]) -> None:
    done = client.run(*arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == client.ok(*arguments, "--help")


def test_help_names_the_options_of_every_command(client: Client) -> None:
    assert "also takes --profile NAME, --json and --debug" in client.ok("releases", "undo", "-h")

    error = json.loads(client.fails(1, "hooks", "--json"))["error"]
    assert error["message"] == "No command is given."


def test_a_pipe_gets_no_colours(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return 2\n")

    assert "\x1b" not in pushed.ok("diff")
    assert "\x1b" not in pushed.ok("releases", FORCE_COLOR="")


def test_what_the_encoding_lacks_is_shown_by_number(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return 2\n")
    pushed.ok("push", "--yes", "--note", "Grüße")
    pushed.environment["PYTHONIOENCODING"] = "ascii"

    process = pushed.start("releases")

    assert "Gr\\xfc\\xdfe" in process.communicate()[0]
    assert process.returncode == 0


def test_what_a_script_logs_steers_no_terminal(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "log.info('\\27[2J')\nreturn '\\27]0;title\\7'\n")

    output = pushed.ok("run", "scripts/sum.lua")

    assert "\x1b" not in output
    assert "\\x1b[2J" in output
