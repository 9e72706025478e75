"""A folder of scripts with libraries, hooks and schedules, and how long the client takes for it.

    .venv-client/bin/python client/tests/large_folder.py

prints a table for 200 scripts, against a server of its own.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = 200
_SCRIPTS_PER_LIBRARY = 10
# What an organisation may have.
_MOST_SCHEDULES = 100


def write_folder(root: Path, scripts: int = SCRIPTS, edition: int = 1) -> int:
    """Writes it; every script differs between two editions. Returns the number of its objects."""
    settings = []
    for number in range(scripts // _SCRIPTS_PER_LIBRARY):
        lines = [f"-- Line {line}." for line in range(40)]
        source = ["local M = {}", *lines, "function M.add(a, b) return a + b end", "return M", ""]
        _write(root / "libraries" / f"money-{number}.lua", "\n".join(source))
        settings.append(f"[libraries.money-{number}]")
    for number in range(scripts):
        library = f"money-{number // _SCRIPTS_PER_LIBRARY}"
        lines = [f"-- Step {line} of script {number}." for line in range(60)]
        source = [
            f'local money = require("{library}")',
            *lines,
            f"return {{edition = {edition}, total = money.add(params.json().a, {number})}}",
            "",
        ]
        _write(root / "scripts" / f"sum-{number}.lua", "\n".join(source))
        settings.append(f"[scripts.sum-{number}]\nenabled = true\n")
        settings.append(f'[hooks."sum-{number}/orders"]\nenabled = true\nmaxBodyBytes = 4096\n')
    schedules = min(scripts // 2, _MOST_SCHEDULES)
    for number in range(schedules):
        cron = f"{number % 60} 3 * * *"
        settings.append(f'[schedules.night-{number}]\nscript = "sum-{number}"\ncron = "{cron}"\n')
    _write(root / "moonhook.toml", "\n".join(settings))
    return scripts // _SCRIPTS_PER_LIBRARY + 2 * scripts + schedules


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def measure() -> None:
    from server import Server  # noqa: PLC0415  Tests import this file for the folder alone.

    moonhook = str(Path(sys.executable).with_name("moonhook"))
    with tempfile.TemporaryDirectory() as directory:
        places = {name: Path(directory, name) for name in ("home", "server", "mine", "empty")}
        for place in places.values():
            place.mkdir()

        def timed(title: str, folder: str, *arguments: str, stdin: str = "") -> None:
            started = time.monotonic()
            subprocess.run(
                [moonhook, *arguments],
                cwd=places[folder],
                env={
                    "PATH": os.environ["PATH"],
                    "HOME": str(places["home"]),
                    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
                    "LANG": "C.UTF-8",
                },
                input=stdin,
                capture_output=True,
                text=True,
                check=True,
            )
            if title:
                sys.stdout.write(f"{title:42} {time.monotonic() - started:5.1f} s\n")
                sys.stdout.flush()

        with Server(places["server"]).running() as server:
            key = server.make_key(server.make_organisation("Acme"))
            login = f"{key.key}\n{key.secret}\n"
            timed("", "mine", "login", server.url, "--api-key", stdin=login)
            write_folder(places["mine"])
            timed("diff, all new: uploads the sources", "mine", "diff")
            timed("push, all new", "mine", "push", "--yes")
            for _ in range(3):
                timed("push again, nothing to change", "mine", "push", "--yes")
                timed("push --check", "mine", "push", "--check")
                timed("diff", "mine", "diff")
                timed("pull, nothing to change", "mine", "pull")
            timed("", "empty", "init")
            timed("pull into an empty folder", "empty", "pull")
            write_folder(places["mine"], edition=2)
            timed("diff, every script differs", "mine", "diff")
            timed("push, every script differs", "mine", "push", "--yes")
            timed("pull, every script differs", "empty", "pull")


if __name__ == "__main__":
    measure()
