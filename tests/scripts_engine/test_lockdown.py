"""The check_sandbox command, and the checks at start-up."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import override_settings

from scripts_engine import sandbox_pool
from scripts_engine.management.commands import check_sandbox
from scripts_engine.sandbox import Attack, Layer, WorkerAttack, script_attacks

NO_SECCOMP = Layer(name="seccomp", is_active=False, detail="libseccomp.so.2 is not there")
NO_LANDLOCK = Layer(name="landlock", is_active=False, detail="the kernel has none")


def suite_of(directory: Path, **sources: str) -> list[Attack]:
    for name, source in sources.items():
        (directory / f"{name}.lua").write_text(f"-- attack: {name}\n{source}")
    return script_attacks(directory)


def test_the_report_names_layers_and_attacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_of(
        tmp_path,
        hang="-- expect: timed-out\n-- limits: wall=0.2\nwhile true do end",
        open_file="-- expect: succeeded: absent\nreturn io == nil and 'absent'",
    )
    monkeypatch.setattr(check_sandbox, "script_attacks", lambda: suite)
    monkeypatch.setattr(check_sandbox, "pair_attacks", list)
    on_worker = WorkerAttack("forge_frame", "refused", lambda: "refused")
    monkeypatch.setattr(check_sandbox, "child_attacks", lambda: [on_worker])
    monkeypatch.setattr(check_sandbox, "host_attacks", list)
    output = StringIO()
    call_command("check_sandbox", "--json", stdout=output)
    report = json.loads(output.getvalue())

    assert {layer["name"] for layer in report["layers"]} >= {"seccomp", "landlock", "rlimits"}
    outcomes = {attack["name"]: attack["outcome"] for attack in report["attacks"]}
    assert outcomes == {
        "hang": "timed-out",
        "open_file": "succeeded",
        "forge_frame": "refused",
    }
    assert all(attack["asExpected"] for attack in report["attacks"])


def test_an_attack_that_gets_through_fails_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = suite_of(tmp_path, through="-- expect: failed\nreturn 1")
    monkeypatch.setattr(check_sandbox, "script_attacks", lambda: suite)
    monkeypatch.setattr(check_sandbox, "pair_attacks", list)
    on_worker = WorkerAttack("forge_frame", "refused", lambda: "accepted")
    monkeypatch.setattr(check_sandbox, "child_attacks", lambda: [on_worker])
    monkeypatch.setattr(check_sandbox, "host_attacks", list)
    output = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_sandbox", stdout=output)

    assert ended.value.code == 1
    assert "FAIL through" in output.getvalue()
    assert "FAIL forge_frame" in output.getvalue()
    assert "0 of 2 attacks" in output.getvalue()


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_a_suite_without_attacks_fails_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(check_sandbox, "script_attacks", lambda: script_attacks(tmp_path / folder))
    output = StringIO()

    with pytest.raises(CommandError, match="No attack was run") as ended:
        call_command("check_sandbox", stdout=output)
    assert ended.value.returncode == 1
    assert "attacks ended as expected" not in output.getvalue()

    output = StringIO()
    with pytest.raises(CommandError, match="No attack was run"):
        call_command("check_sandbox", "--json", stdout=output)
    assert json.loads(output.getvalue())["attacks"] == []


def test_without_seccomp_production_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_pool, "active_layers", lambda: (NO_SECCOMP,))

    assert sandbox_pool.require_lockdown() == [NO_SECCOMP]
    with (
        override_settings(IS_PRODUCTION=True),
        pytest.raises(ImproperlyConfigured, match="libseccomp"),
    ):
        sandbox_pool.require_lockdown()


def test_production_starts_without_landlock_and_logs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_pool, "active_layers", lambda: (NO_LANDLOCK,))

    with override_settings(IS_PRODUCTION=True):
        assert sandbox_pool.require_lockdown() == [NO_LANDLOCK]
