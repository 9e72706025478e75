"""Production refuses to start with weak secrets, and does not print them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.moonhook_server import PRODUCTION_SECRETS, ROOT

PEPPER = bytes(range(32)).hex()
PRODUCTION = PRODUCTION_SECRETS | {
    "MOONHOOK_ENV": "production",
    "PUBLIC_URL": "https://hooks.example.com",
    "EMAIL_URL": "smtp://127.0.0.1:1",
    "SMS_URL": "off",
}
WEAK = [
    ("SECRET_KEY", "short", "SECRET_KEY must have at least 50 characters."),
    ("SECRET_KEY", "abcdefghi" * 7, "SECRET_KEY is not random"),
    (
        "SECRET_KEY",
        "django-insecure-" + "0123456789abcdefghijklmnopqrstuvwxyz" * 2,
        "SECRET_KEY begins with django-insecure-",
    ),
    ("MOONHOOK_PEPPERS", "1:" + "00" * 32, "MOONHOOK_PEPPERS: version 1 is not random"),
    ("MOONHOOK_PEPPERS", "1:" + "0123456789abcdef" * 4, "MOONHOOK_PEPPERS: version 1 is not"),
    (
        "MOONHOOK_PEPPERS",
        f"2:{PEPPER},1:{'00' * 32}",
        "MOONHOOK_PEPPERS: version 1 is not random",
    ),
    ("MOONHOOK_PEPPERS", "1:" + "0b0c" * 4, "MOONHOOK_PEPPERS: version 1 is shorter than 32"),
    ("MOONHOOK_PEPPERS", f"2:{PEPPER},1:{PEPPER}", "version 1 has the key of another version"),
    ("METRICS_TOKEN", "short", "METRICS_TOKEN must have at least 16 characters."),
    ("METRICS_TOKEN", "abcd" * 8, "METRICS_TOKEN is not random"),
]


def start(directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Load the settings in a new process; return its exit status and output."""
    paths = {"PATH": os.environ["PATH"], "MOONHOOK_DATA_DIR": str(directory)}
    finished = subprocess.run(
        [sys.executable, "-c", "from config import settings"],
        cwd=ROOT,
        env=paths | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.returncode, finished.stdout + finished.stderr


@pytest.mark.parametrize(("name", "value", "complaint"), WEAK)
def test_a_weak_secret_stops_the_start_and_is_not_shown(
    tmp_path: Path, name: str, value: str, complaint: str
) -> None:
    status, output = start(tmp_path, PRODUCTION | {name: value})

    assert status == 1
    assert complaint in output
    assert "Make one with" in output or "shorter" in output
    assert value not in output


def test_a_weak_secret_in_a_file_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("weak-from-a-file\n")
    environment = {name: value for name, value in PRODUCTION.items() if name != "SECRET_KEY"}
    status, output = start(tmp_path, environment | {"SECRET_KEY_FILE": str(tmp_path / "secret")})

    assert status == 1
    assert "SECRET_KEY must have at least 50 characters." in output
    assert "weak-from-a-file" not in output


def test_production_starts_with_random_secrets(tmp_path: Path) -> None:
    assert start(tmp_path, PRODUCTION) == (0, "")


def test_production_starts_with_secrets_made_by_openssl(tmp_path: Path) -> None:
    secrets = {
        "SECRET_KEY": os.urandom(32).hex(),
        "MOONHOOK_PEPPERS": f"2:{os.urandom(32).hex()},1:{os.urandom(32).hex()}",
        "METRICS_TOKEN": os.urandom(32).hex(),
    }

    assert start(tmp_path, PRODUCTION | secrets) == (0, "")


def test_development_starts_with_weak_secrets(tmp_path: Path) -> None:
    weak = {"SECRET_KEY": "short", "MOONHOOK_PEPPERS": "1:" + "00" * 32}

    assert start(tmp_path, weak) == (0, "")
