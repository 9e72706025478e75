"""manage.py check --deploy: what it says, and that the documentation has every word of it."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import CheckMessage, run_checks

from hooks.senders import shipped_vectors
from scripts_engine.sandbox import Layer

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = [ROOT / "config" / "checks.py"]


# Django warns of who sets them in tests. Here nobody connects, the settings are only looked at.
pytestmark = pytest.mark.filterwarnings("ignore:Overriding setting DATABASES:UserWarning")


@pytest.fixture(autouse=True)
def sound_settings(settings: Any, tmp_path: Path) -> Any:
    """A production that nothing is to be said about. Each test changes one thing."""
    tmp_path.chmod(0o700)
    settings.IS_PUBLIC_URL_HTTPS = True
    settings.TRUSTED_PROXY_COUNT = 1
    settings.DATABASES = {
        "default": {
            "ENGINE": "core.database.postgresql",
            "OPTIONS": {"pool": {"max_size": 24}},
        }
    }
    settings.IS_SECOND_FACTOR_REQUIRED = True
    settings.ALLOWED_HOSTS = ["hooks.example.com"]
    settings.DRAIN_SECONDS = 5
    settings.SMS_URL = "json://127.0.0.1/{phone}"
    settings.DATA_DIR = tmp_path
    return settings


@pytest.fixture(autouse=True)
def layers(monkeypatch: pytest.MonkeyPatch) -> list[Layer]:
    found: list[Layer] = []
    monkeypatch.setattr("config.checks.active_layers", lambda: tuple(found))
    return found


def said() -> dict[str, CheckMessage]:
    messages = run_checks(include_deployment_checks=True)
    return {str(each.id): each for each in messages if str(each.id).startswith("moonhook.")}


def messages_in_the_sources() -> Iterator[ast.Call]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and "id" in {each.arg for each in node.keywords}:
                yield node


def ids_of(node: ast.expr) -> list[str]:
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and each.value.startswith("moonhook.")
    ]


def test_a_sound_production_is_left_alone() -> None:
    assert said() == {}


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("IS_PUBLIC_URL_HTTPS", False, "moonhook.W001"),
        ("TRUSTED_PROXY_COUNT", 0, "moonhook.W002"),
        ("DATABASES", {"default": {"ENGINE": "django.db.backends.sqlite3"}}, "moonhook.W003"),
        ("IS_SECOND_FACTOR_REQUIRED", False, "moonhook.W004"),
        ("WEB_THREADS", settings.WEB_THREADS + 10, "moonhook.W005"),
        ("QUEUE_SLOTS", 1_000, "moonhook.W010"),
        ("ALLOWED_HOSTS", ["*"], "moonhook.E004"),
        ("DRAIN_SECONDS", 0, "moonhook.W008"),
        ("SMS_URL", "off", "moonhook.I001"),
        ("WEB_THREADS", sum(settings.WEB_THREADS_HELD.values()), "moonhook.W009"),
        ("WEB_THREADS_HELD", {"SANDBOX_SLOTS": settings.WEB_THREADS}, "moonhook.W009"),
        ("SANDBOX_SLOTS", settings.WEB_THREADS, "moonhook.E001"),
        ("GRACEFUL_TIMEOUT_SECONDS", 32, "moonhook.E002"),
    ],
)
def test_every_mistake_is_reported(
    settings: Any, setting: str, value: object, expected: str
) -> None:
    setattr(settings, setting, value)

    assert set(said()) == {expected}


@pytest.mark.parametrize(
    ("layer", "expected"), [("landlock", "moonhook.W006"), ("seccomp", "moonhook.E005")]
)
def test_a_missing_layer_of_the_sandbox_is_reported(
    layers: list[Layer], layer: str, expected: str
) -> None:
    layers += [Layer("rlimits", True, ""), Layer(layer, False, "this kernel has none")]

    assert set(said()) == {expected}
    assert f"{layer} layer is not active: this kernel has none." in said()[expected].msg


def test_a_sender_that_is_verified_otherwise_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    github = next(each for each in shipped_vectors() if each.id == "github-published")
    changed = replace(github, expected={"ok": False, "reason": "SignatureMismatch"})
    monkeypatch.setattr("config.checks.shipped_vectors", lambda: (changed,))

    assert set(said()) == {"moonhook.E006"}
    assert "The sender github" in said()["moonhook.E006"].msg


def test_a_data_directory_readable_by_others_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)

    assert set(said()) == {"moonhook.W007"}


def test_every_message_has_an_id_a_hint_and_a_line_in_the_documentation() -> None:
    page = (ROOT / "docs" / "operate.md").read_text()
    messages = list(messages_in_the_sources())
    ids = [
        each
        for call in messages
        for key in call.keywords
        if key.arg == "id"
        for each in ids_of(key.value)
    ]

    assert len(ids) >= 12
    assert len(ids) == len(set(ids))
    assert [call.lineno for call in messages if "hint" not in {k.arg for k in call.keywords}] == []
    assert [each for each in ids if f"`{each}`" not in page] == []
