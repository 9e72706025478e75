"""On a terminal: prompts, Ctrl-C at each of them, narrow windows, colours and slow servers."""

import re
import socket

import pytest
from conftest import Client
from local_program import local_program
from server import Key, Server
from terminal import Terminal, on_terminal

SUM = "return {total = 42}\n"
SETTINGS = '[scripts.sum]\nenabled = true\n\n[hooks."sum/orders"]\nenabled = true\n'


@pytest.fixture
def folder(logged_in: Client) -> Client:
    logged_in.ok("init")
    logged_in.write("moonhook.toml", SETTINGS)
    logged_in.write("scripts/sum.lua", SUM)
    return logged_in


def assert_cancelled(terminal: Terminal) -> None:
    assert terminal.end() == 1
    assert terminal.shown.endswith("error: Cancelled.\nNothing was changed.\n")
    assert "Traceback" not in terminal.shown


def test_a_key_is_typed_and_its_secret_is_not_shown(
    client: Client, server: Server, key: Key
) -> None:
    with on_terminal(client, "login", server.url, "--api-key") as terminal:
        terminal.wait_for("Key: ")
        terminal.type(f"{key.key}\n")
        terminal.wait_for("Secret: ")
        assert not terminal.echoes
        terminal.type(f"{key.secret}\n")
        assert terminal.end() == 0

    assert "Logged in to Acme" in terminal.shown
    assert key.secret not in terminal.shown
    assert client.json("whoami")["key"] == key.key


@pytest.mark.parametrize("prompt", ["Key: ", "Secret: "])
def test_ctrl_c_at_a_prompt_of_login_keeps_nothing(
    client: Client, server: Server, prompt: str
) -> None:
    with on_terminal(client, "login", server.url, "--api-key") as terminal:
        terminal.wait_for("Key: ")
        terminal.type("mhk_tea\n" if prompt == "Secret: " else "")
        terminal.wait_for(prompt)
        terminal.interrupt()
        assert_cancelled(terminal)

    assert not client.configuration.exists()


def test_ctrl_c_while_a_login_waits_for_approval_ends_it(client: Client, server: Server) -> None:
    with on_terminal(client, "login", server.url, "--no-browser") as terminal:
        terminal.wait_for("Waiting for your approval")
        terminal.interrupt()
        assert terminal.end() == 1

    assert "error: Cancelled." in terminal.shown
    assert not client.configuration.exists()


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"], ids=["no", "enter", "end-of-input"])
def test_a_push_that_is_not_confirmed_changes_nothing(folder: Client, answer: str) -> None:
    with on_terminal(folder, "push") as terminal:
        terminal.wait_for("Put this live? [y/N]: ")
        terminal.type(answer)
        assert_cancelled(terminal)

    assert folder.json("releases") == []


def test_ctrl_c_at_the_question_of_a_push_changes_nothing(folder: Client) -> None:
    with on_terminal(folder, "push") as terminal:
        terminal.wait_for("Put this live? [y/N]: ")
        terminal.interrupt()
        assert_cancelled(terminal)

    assert folder.json("releases") == []


def test_a_confirmed_push_is_live(folder: Client) -> None:
    with on_terminal(folder, "push") as terminal:
        terminal.wait_for("Put this live? [y/N]: ")
        terminal.type("y\n")
        assert terminal.end() == 0

    assert "Release 1 is live" in terminal.shown
    assert len(folder.json("releases")) == 1


@pytest.mark.parametrize("prompt", ["Value: ", "Repeat for confirmation: "])
def test_ctrl_c_at_a_prompt_for_a_secret_sets_nothing(logged_in: Client, prompt: str) -> None:
    with on_terminal(logged_in, "secrets", "set", "SHOP") as terminal:
        terminal.wait_for("Value: ")
        assert not terminal.echoes
        terminal.type("tea-4711\n" if prompt != "Value: " else "")
        terminal.wait_for(prompt)
        terminal.interrupt()
        assert_cancelled(terminal)
        assert terminal.echoes

    assert "tea-4711" not in terminal.shown
    assert logged_in.json("secrets", "list") == []


def test_a_secret_is_typed_twice_and_never_shown(logged_in: Client) -> None:
    with on_terminal(logged_in, "secrets", "set", "SHOP") as terminal:
        terminal.wait_for("Value: ")
        terminal.type("tea-4711\n")
        terminal.wait_for("Repeat for confirmation: ")
        terminal.type("tea-4711\n")
        assert terminal.end() == 0

    assert "tea-4711" not in terminal.shown
    assert [row["name"] for row in logged_in.json("secrets", "list")] == ["SHOP"]


def test_ctrl_c_at_the_question_of_undo_undoes_nothing(folder: Client) -> None:
    folder.ok("push", "--yes")
    with on_terminal(folder, "releases", "undo", "1") as terminal:
        terminal.wait_for("Undo it? [y/N]: ")
        terminal.interrupt()
        assert_cancelled(terminal)

    assert len(folder.json("releases")) == 1


@pytest.mark.parametrize(
    ("arguments", "begun"),
    [
        (("runs", "--follow"), "Succeeded"),
        (("watch", "scripts/sum.lua"), '{"total":42}'),
        (("listen", "sum/orders", "--forward", "http://127.0.0.1:9"), "Ctrl-C ends it."),
    ],
    ids=["runs-follow", "watch", "listen"],
)  # fmt: skip
def test_ctrl_c_ends_what_goes_on_without_an_error(
    folder: Client, arguments: tuple[str, ...], begun: str
) -> None:
    folder.ok("push", "--yes")
    folder.ok("run", "scripts/sum.lua")
    with on_terminal(folder, *arguments) as terminal:
        terminal.wait_for(begun)
        terminal.interrupt()
        assert terminal.end() == 0

    assert "error" not in terminal.shown


def test_a_narrow_terminal_cuts_nothing(folder: Client) -> None:
    folder.ok("push", "--yes")
    run_id = folder.json("run", "scripts/sum.lua")["id"]
    with on_terminal(folder, "runs", columns=60) as terminal:
        assert terminal.end() == 0

    assert run_id in terminal.shown
    assert max(map(len, terminal.shown.splitlines())) <= 60
    assert "…" not in terminal.shown


def test_colours_are_on_a_terminal_unless_no_color_is_set(folder: Client) -> None:
    with on_terminal(folder, "diff") as coloured:
        coloured.end()
    folder.environment["NO_COLOR"] = "1"
    with on_terminal(folder, "diff") as plain:
        plain.end()

    assert "\x1b[32m+return {total = 42}" in coloured.raw
    assert not re.search(r"\x1b\[[0-9;]*3\dm", plain.raw)


def test_what_was_uploaded_leaves_no_progress_behind(folder: Client) -> None:
    with on_terminal(folder, "diff") as terminal:
        assert terminal.end() == 0

    assert "Uploading" in terminal.raw
    assert "\x1b[2K" in terminal.raw


def test_a_busy_server_says_how_long_it_makes_wait(client: Client) -> None:
    client.environment |= {"MOONHOOK_KEY": "k", "MOONHOOK_SECRET": "secret"}
    with local_program() as busy, on_terminal(client, "login", busy.url, "--api-key") as terminal:
        busy.status, busy.headers = 503, {"Retry-After": "1"}
        assert terminal.end() == 4

        assert terminal.shown.startswith("The server is busy; trying again in 1 s…\n")
        assert "The server is busy or restarting. Try again in 1 s." in terminal.shown
        assert busy.received.qsize() == 4


def test_a_server_that_is_busy_for_long_is_not_waited_for(client: Client) -> None:
    with local_program() as busy:
        busy.status, busy.headers = 503, {"Retry-After": "3600"}
        output = client.fails(4, "login", busy.url, "--api-key", stdin="k\nsecret\n")

        assert "Try again in 3600 s." in output
        assert busy.received.qsize() == 1


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    server = pytest.importorskip("moonhook_cli.server")
    errors = pytest.importorskip("moonhook_cli.errors")
    monkeypatch.setattr(server, "_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        asked = server.Server(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(errors.UnreachableError, match="did not answer in time"):
            asked.graphql("{ __typename }")
        asked.close()
