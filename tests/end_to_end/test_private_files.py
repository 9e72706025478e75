"""Files created by commands are private to their owner, whatever the umask."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.moonhook_server import ROOT

# Runs several commands, each in a process of its own.
pytestmark = pytest.mark.slow

# The modes while the database is open, when its -wal and -shm files are there.
WORK = """
import json
from django.conf import settings
from django.core.mail import send_mail
from accounts.models import Organisation
from accounts.messages.sms import send_sms
Organisation.objects.create(name="Acme")
send_mail("subject", "text", None, ["alice@example.com"])
send_sms("+491701234567", "text")
print(json.dumps({
    str(path.relative_to(settings.DATA_DIR.parent)): path.stat().st_mode & 0o777
    for path in [settings.DATA_DIR, *settings.DATA_DIR.rglob("*")]
}))
"""


def manage(data: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MOONHOOK_DATA_DIR": str(data)},
        umask=0o022,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_files_made_by_commands_are_private_to_their_owner(tmp_path: Path) -> None:
    data = tmp_path / "deeper" / "data"
    manage(data, "migrate", "--verbosity", "0")
    modes = json.loads(manage(data, "shell", "--no-imports", "-c", WORK).splitlines()[-1])

    made = {"data", "data/secrets.json", "data/outbox"} | {
        f"data/moonhook.sqlite3{suffix}" for suffix in ("", "-wal", "-shm")
    }
    assert made <= set(modes)
    assert len([name for name in modes if name.startswith("data/outbox/")]) == 2
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_an_existing_directory_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o710)
    manage(tmp_path, "migrate", "--verbosity", "0")

    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o710


def test_every_check_warns_of_data_readable_by_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    loose = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "MOONHOOK_DATA_DIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )

    assert "moonhook.W007" in loose.stderr
    assert f"chmod 700 {tmp_path}" in loose.stderr
