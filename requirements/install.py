"""Installs a lock file into this interpreter's environment: python requirements/install.py FILE.

Shows one line of progress instead of pip's own output, which appears only if pip fails.
"""

import subprocess
import sys
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-color"]


def install(lock_file: str) -> int:
    total = sum(" \\" in line and "==" in line for line in Path(lock_file).read_text().splitlines())
    say(f"moonhook: installing {total} packages")
    command = [*PIP, "--progress-bar", "off", "--require-hashes", "-r", lock_file]
    pip = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    output = []
    collected = 0
    for line in pip.stdout or ():
        output.append(line)
        if line.startswith("Collecting "):
            collected += 1
            show(f"moonhook: {collected} of {total} packages found")
        elif line.startswith("Installing "):
            show(f"moonhook: writing {total} packages")
        elif "Retrying" in line:
            say(line.strip())
    show("")
    if pip.wait():
        say("".join(output))
    return pip.returncode


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def show(text: str) -> None:
    """Replace the last line, on a terminal only."""
    if sys.stdout.isatty():
        sys.stdout.write(f"\r\033[K{text}")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(install(sys.argv[1]))
