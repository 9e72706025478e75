"""init, pull, diff and push against a real server."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Client
from server import Server

from moonhook_cli.folder import Folder

SUM = "local order = params.json()\nreturn {total = order.a + order.b}\n"
SETTINGS = """# Ours.
[scripts.sum]
enabled = true  # since spring

[hooks."sum/orders"]
enabled = true
maxBodyBytes = 2048

[schedules.nightly]
script = "sum"
cron = "0 3 * * *"

[libraries.money]
"""
LIVE_SUM = "return 'from the admin'\n"


@pytest.fixture
def folder(logged_in: Client) -> Client:
    logged_in.ok("init")
    logged_in.write("moonhook.toml", SETTINGS)
    logged_in.write("scripts/sum.lua", SUM)
    logged_in.write("libraries/money.lua", "return {}\n")
    return logged_in


@pytest.fixture
def pushed(folder: Client) -> Client:
    folder.ok("push", "--yes", "--note", "first")
    return folder


def changes(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["action"], row["name"]) for row in rows}


def release_numbers(client: Client) -> list[int]:
    return [row["number"] for row in client.json("releases")]


def test_init_makes_a_folder(logged_in: Client) -> None:
    logged_in.ok("init")

    assert json.loads(logged_in.read(".luarc.json"))["runtime.version"] == "Lua 5.4"
    assert "*.lua text eol=lf" in logged_in.read(".gitattributes")
    assert "---@class moonhook.http" in logged_in.read("moonhook.lua")
    assert "function params.get(name) end" in logged_in.read("moonhook.lua")
    assert "moonhook.toml is there already" in logged_in.fails(1, "init")


def test_a_push_is_one_release_and_a_second_changes_nothing(folder: Client) -> None:
    pushed = folder.json("push", "--yes", "--note", "first")

    assert changes(pushed["changes"]) >= {("Create", "sum"), ("Create", "money")}
    assert pushed["issuedHooks"][0]["callToken"].startswith("mhc_")
    assert folder.json("push", "--yes")["changes"] == []
    assert len(release_numbers(folder)) == 1
    folder.ok("push", "--check")


def test_what_was_pushed_is_pulled_as_it_was(pushed: Client) -> None:
    assert pushed.json("pull") == []
    assert pushed.read("moonhook.toml") == SETTINGS
    assert pushed.read("scripts/sum.lua") == SUM


def test_a_push_without_an_answer_changes_nothing(folder: Client) -> None:
    output = folder.fails(1, "push")

    assert "Add --yes" in output
    assert release_numbers(folder) == []


def test_check_exits_2_when_something_differs(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return 1\n")

    output = pushed.fails(2, "push", "--check")

    assert "+return 1" in output
    assert "+return 1" in pushed.ok("diff")
    assert len(release_numbers(pushed)) == 1


@pytest.mark.parametrize(
    ("options", "scopes", "said"),
    [
        (["--draft"], ["WriteDrafts"], "Saved as your drafts; nothing went live."),
        ([], ["WriteDrafts", "Publish"], "Release 1 is live"),
    ],
)
def test_scripts_are_pushed_with_a_key_that_may_not_change_hooks(
    logged_in: Client, server: Server, organisation: str, options: Any, scopes: Any, said: str
) -> None:
    key = server.make_key(organisation, " ".join(["ReadScripts", *scopes]))
    environment = {
        "MOONHOOK_URL": server.url,
        "MOONHOOK_KEY": key.key,
        "MOONHOOK_SECRET": key.secret,
    }
    logged_in.ok("init")
    logged_in.write("moonhook.toml", "[scripts.alone]\n")
    logged_in.write("scripts/alone.lua", "return 1\n")

    output = logged_in.ok("push", "--yes", *options, **environment)

    assert said in output


def test_check_works_with_a_key_that_only_reads(
    pushed: Client, server: Server, organisation: str
) -> None:
    reader = server.make_key(organisation, "ReadScripts")
    environment = {
        "MOONHOOK_URL": server.url,
        "MOONHOOK_KEY": reader.key,
        "MOONHOOK_SECRET": reader.secret,
    }
    pushed.ok("push", "--check", **environment)
    pushed.write("scripts/sum.lua", "return 'new'\n")

    assert "These sources differ: sum" in pushed.fails(2, "push", "--check", **environment)
    refused = pushed.fails(3, "push", "--yes", **environment)
    assert "WriteDrafts" in refused
    assert len(release_numbers(pushed)) == 1


def test_a_colleague_pulls_into_an_empty_folder(pushed: Client, other_client: Client) -> None:
    other_client.ok("init")
    other_client.ok("pull")

    assert other_client.read("scripts/sum.lua") == SUM
    assert other_client.read("libraries/money.lua") == "return {}\n"
    assert '[hooks."sum/orders"]' in other_client.read("moonhook.toml")
    other_client.ok("push", "--check")


def test_a_release_meanwhile_is_told_and_never_overwritten(
    pushed: Client, other_client: Client
) -> None:
    other_client.ok("init")
    other_client.ok("pull")
    other_client.write("scripts/sum.lua", LIVE_SUM)
    other_client.ok("push", "--yes")
    pushed.write("scripts/sum.lua", "return 'mine'\n")

    output = pushed.fails(1, "push", "--yes")

    assert "What is live has changed since your last pull" in output
    assert re.search(r"\nRelease 2 by cli, [-0-9]+ [:0-9]+Z: Update \w+ sum\n", output)
    assert len(release_numbers(pushed)) == 2
    conflict = pushed.fails(1, "pull")
    assert "Changed on both sides: scripts/sum.lua" in conflict
    text = pushed.read("scripts/sum.lua")
    assert text == (f"<<<<<<< yours\nreturn 'mine'\n=======\n{LIVE_SUM}>>>>>>> server\n")
    assert "conflict marker" in pushed.fails(1, "push", "--yes")
    pushed.write("scripts/sum.lua", "return 'both'\n")
    pushed.ok("push", "--yes")
    assert len(release_numbers(pushed)) == 3


def test_changes_of_different_lines_are_merged(pushed: Client, other_client: Client) -> None:
    other_client.ok("init")
    other_client.ok("pull")
    other_client.write("scripts/sum.lua", "-- The sum.\n" + SUM)
    other_client.ok("push", "--yes")
    pushed.write("scripts/sum.lua", SUM + "-- The end.\n")

    pushed.ok("pull")

    assert pushed.read("scripts/sum.lua") == "-- The sum.\n" + SUM + "-- The end.\n"


def test_comments_and_order_survive_a_pull(pushed: Client, other_client: Client) -> None:
    other_client.ok("init")
    other_client.ok("pull")
    text = other_client.read("moonhook.toml").replace("maxBodyBytes = 2048", "maxBodyBytes = 4096")
    other_client.write("moonhook.toml", text)
    other_client.ok("push", "--yes")

    pushed.ok("pull")

    assert pushed.read("moonhook.toml") == SETTINGS.replace("2048", "4096")


def test_what_the_server_deleted_leaves_the_folder(pushed: Client, other_client: Client) -> None:
    other_client.ok("init")
    other_client.write("moonhook.toml", "[scripts.sum]\nenabled = true\n")
    other_client.write("scripts/sum.lua", SUM)
    other_client.ok("push", "--yes", "--prune")

    pushed.ok("pull")

    assert not (pushed.folder / "libraries" / "money.lua").exists()
    assert "[libraries.money]" not in pushed.read("moonhook.toml")
    assert "nightly" not in pushed.read("moonhook.toml")


def test_what_the_server_deleted_leaves_the_lists_of_environments(pushed: Client) -> None:
    listed = '\n[env.staging]\nenabled = ["scripts/sum", "schedules/nightly"]\n'
    pushed.write("moonhook.toml", SETTINGS + listed)
    pushed.write("scripts/tea.lua", "return 1\n")
    pushed.ok("push", "--yes")
    pushed.ok("pull")
    pushed.ok("releases", "undo", "1", "--yes", "--force")

    pushed.ok("pull")

    assert "enabled = []" in pushed.read("moonhook.toml")


def test_without_prune_nothing_is_deleted(pushed: Client) -> None:
    pushed.write("moonhook.toml", "[scripts.sum]\nenabled = true\n")
    (pushed.folder / "libraries" / "money.lua").unlink()

    assert pushed.json("diff")["changes"] == []
    deleted = changes(pushed.json("diff", "--prune")["changes"])
    assert ("Delete", "money") in deleted


def test_a_script_is_renamed_by_was(pushed: Client) -> None:
    text = pushed.read("moonhook.toml")
    renamed = text.replace("[scripts.sum]", '[scripts.sum]\nname = "Sum of all"\nwas = "sum"')
    pushed.write("moonhook.toml", renamed)

    result = pushed.json("push", "--yes")

    assert ("Rename", "Sum of all") in changes(result["changes"])
    assert pushed.json("push", "--yes")["changes"] == []
    assert pushed.json("pull") == []


def test_a_draft_puts_nothing_live(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return 'draft'\n")

    pushed.ok("push", "--draft", "--yes")

    assert len(release_numbers(pushed)) == 1
    assert pushed.fails(2, "push", "--check")


def test_drafts_leave_hooks_and_settings_as_they_are(pushed: Client) -> None:
    hooks = pushed.json("hooks", "list")
    pushed.write("scripts/sum.lua", "return 'draft'\n")
    pushed.write("scripts/new.lua", "return 'new'\n")
    settings = pushed.read("moonhook.toml").replace("enabled = true", "enabled = false")
    pushed.write("moonhook.toml", f'{settings}\n[scripts.new]\n\n[hooks."new/orders"]\n')

    done = pushed.json("push", "--draft", "--yes")

    assert {change["name"] for change in done["changes"]} == {"sum", "new"}
    assert done["issuedHooks"] == []
    assert pushed.json("hooks", "list") == hooks
    pushed.ok("run", "scripts/new.lua")
    assert "Drafts delete nothing" in pushed.fails(1, "push", "--draft", "--prune", "--yes")
    assert pushed.json("push", "--yes")["issuedHooks"][0]["hook"]["script"] == {"name": "new"}


def test_a_problem_with_a_setting_names_its_key(pushed: Client) -> None:
    settings = pushed.read("moonhook.toml")
    pushed.write("moonhook.toml", settings.replace("[scripts.sum]", "[scripts.sum]\nnosuch = 1"))

    assert "moonhook.toml (scripts.sum.nosuch): " in pushed.fails(1, "push", "--yes")


def test_a_problem_names_the_file_and_changes_nothing(pushed: Client) -> None:
    pushed.write("scripts/sum.lua", "return (\n")

    output = pushed.fails(1, "push", "--yes")

    assert "scripts/sum.lua: " in output
    assert len(release_numbers(pushed)) == 1


ENVIRONMENT = """
[env.staging]
profile = "staging"
organisation = "{organisation}"
enabled = ["scripts/sum"]

[env.staging.hooks."sum/orders"]
maxBodyBytes = 1000
"""


def test_an_environment_has_its_own_organisation_and_settings(
    pushed: Client, server: Server, organisation_name: str
) -> None:
    name = f"{organisation_name} staging"
    staging = server.make_key(server.make_organisation(name))
    pushed.log_in(server, staging, "--profile", "staging")
    pushed.write("moonhook.toml", SETTINGS + ENVIRONMENT.format(organisation=name))

    pushed.ok("push", "--to", "staging", "--yes")

    hooks = pushed.json("hooks", "list", "--profile", "staging")
    assert hooks[0]["enabled"] is False
    assert pushed.json("hooks", "list")[0]["enabled"] is True
    pushed.ok("push", "--to", "staging", "--check")
    pushed.ok("push", "--check")
    assert pushed.json("pull", "--from", "staging") == []


def test_what_one_environment_put_live_is_known_to_others_of_its_organisation(
    pushed: Client, organisation_name: str
) -> None:
    production = f'\n[env.production]\norganisation = "{organisation_name}"\n'
    pushed.write("moonhook.toml", f"# Ours\n{SETTINGS}{production}")
    pushed.write("scripts/sum.lua", "return 2\n")
    pushed.ok("push", "--to", "production", "--yes")

    assert pushed.json("pull") == []
    pushed.write("scripts/sum.lua", "return 3\n")
    pushed.ok("push", "--yes")
    pushed.write("scripts/sum.lua", "return 4\n")
    pushed.ok("push", "--to", "production", "--yes")


def test_a_missing_secret_is_named_with_the_profile_that_lacks_it(
    pushed: Client, server: Server, organisation_name: str
) -> None:
    name = f"{organisation_name} staging"
    staging = server.make_key(server.make_organisation(name))
    pushed.log_in(server, staging, "--profile", "staging")
    pushed.write("moonhook.toml", SETTINGS + ENVIRONMENT.format(organisation=name))
    pushed.write("scripts/sum.lua", 'return secrets.get("SHOP_KEY")\n')

    output = pushed.run("diff", "--to", "staging").stderr

    assert output.endswith("moonhook secrets set SHOP_KEY --profile staging\n")


def test_a_key_of_another_organisation_is_refused(pushed: Client) -> None:
    pushed.write("moonhook.toml", 'organisation = "Other"\n' + SETTINGS)
    pushed.write("scripts/sum.lua", "return 1\n")

    assert "not to Other" in pushed.fails(3, "push", "--yes")
    assert len(release_numbers(pushed)) == 1


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = Folder(tmp_path), tmp_path / "sum.lua"
    file.write_text("old")
    file.chmod(0o640)
    folder.write("sum.lua", "new")
    written = file.read_text(), file.stat().st_mode & 0o777

    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        folder.write("sum.lua", "newer")

    assert written == ("new", 0o640)
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def outside(client: Client) -> str:
    client.write("moonhook.toml", '[scripts."../secret"]\n')
    client.write("../secret.lua", "return 1\n")
    return "scripts/../secret.lua: is outside the folder."


def symbolic_link(client: Client) -> str:
    target = client.write("../elsewhere.lua", "return 1\n")
    Path(client.folder, "scripts", "link.lua").symlink_to(target)
    return "scripts/link.lua: is a symbolic link."


def linked_directory(client: Client) -> str:
    Path(client.folder, "libraries", "money.lua").unlink()
    Path(client.folder, "libraries").rmdir()
    Path(client.folder, "libraries").symlink_to(client.folder / "scripts")
    return "libraries: is a symbolic link."


def not_utf8(client: Client) -> str:
    Path(client.folder, "scripts", "latin.lua").write_bytes(b"return '\xe4'\n")
    return "scripts/latin.lua: is not UTF-8 (byte 9)."


def same_slug(client: Client) -> str:
    client.write("libraries/SUM.lua", "return {}\n")
    return "libraries/SUM.lua: has the same slug as scripts/sum.lua."


def same_slug_in_case(client: Client) -> str:
    client.write("scripts/Sum.lua", "return {}\n")
    return "has the same slug as scripts/Sum.lua."


def missing_file(client: Client) -> str:
    Path(client.folder, "scripts", "sum.lua").unlink()
    return "scripts/sum.lua: is not there."


def bad_toml(client: Client) -> str:
    client.write("moonhook.toml", "[scripts\n")
    return "moonhook.toml: "


def unknown_key(client: Client) -> str:
    client.write("moonhook.toml", "[script.sum]\n")
    return "there is no key `script`."


BAD_FOLDERS = {
    "outside": outside,
    "symbolic-link": symbolic_link,
    "linked-directory": linked_directory,
    "not-utf-8": not_utf8,
    "same-slug": same_slug,
    "same-slug-in-case": same_slug_in_case,
    "missing-file": missing_file,
    "bad-toml": bad_toml,
    "unknown-key": unknown_key,
}


@pytest.mark.parametrize("spoil", BAD_FOLDERS.values(), ids=BAD_FOLDERS)
def test_a_wrong_folder_is_named_and_nothing_is_sent(folder: Client, spoil: Any) -> None:
    message = spoil(folder)

    done = folder.run("push", "--yes", "--debug")

    assert done.returncode == 1, done.stdout + done.stderr
    assert message in done.stderr
    assert "Nothing was sent." in done.stderr
    assert "planManifest" not in done.stderr
    assert "keepBlobs" not in done.stderr
