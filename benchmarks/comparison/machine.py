"""The machine, and whether it is idle."""

import os
import platform
import shutil
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

REST_PERCENT = 10.0
LOOK_SECONDS = 0.5
LOOKS = 10
PACKAGES = ("django", "djangorestframework", "django-rest-knox", "gunicorn", "lupa", "psycopg")
COMMANDS = {
    "wrk": ("wrk", "--version"),
    "webhook": ("webhook", "-version"),
    "nginx": ("nginx", "-v"),
    "node": ("node", "--version"),
}


def wait_for_rest() -> float:
    """Waits for an idle machine; returns the percentage of CPU time in use before a run."""
    for _ in range(LOOKS):
        busy = _busy_percent()
        if busy < REST_PERCENT:
            break
    return busy


def _busy_percent() -> float:
    before = _processor_times()
    time.sleep(LOOK_SECONDS)
    spent = [late - early for early, late in zip(before, _processor_times(), strict=True)]
    idle = spent[3] + spent[4]  # idle and iowait: proc(5)
    return 100 * (1 - idle / max(1, sum(spent)))


def _processor_times() -> list[int]:
    first_line = Path("/proc/stat").read_text().partition("\n")[0]
    return [int(ticks) for ticks in first_line.split()[1:9]]


def described() -> dict[str, str]:
    """Maps names of hardware and software to descriptions."""
    processor = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processors": f"{os.cpu_count()} x {processor}",
        "memory": f"{memory_gib:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        **{name: _first_line(command) for name, command in COMMANDS.items()},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _first_line(command: tuple[str, ...]) -> str:
    if shutil.which(command[0]) is None:
        return "not installed"
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    return (finished.stdout + finished.stderr).strip().splitlines()[0]
