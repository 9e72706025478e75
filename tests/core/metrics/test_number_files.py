"""Metrics files that reserve their disk space."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prometheus_client import values

from core.metrics.process_files import NumberFile
from tests.moonhook_server import ROOT

KEYS = [f"number-{number:04}" + "x" * 90 for number in range(1_500)]


@contextmanager
def written(path: Path) -> Iterator[NumberFile]:
    with closing(NumberFile(str(path))) as file:
        for number, key in enumerate(KEYS):
            file.write_value(key, float(number), 0.0)
        yield file


def test_prometheus_client_uses_these_files() -> None:
    assert values.MmapedDict is NumberFile  # type: ignore[attr-defined]


def test_the_space_of_a_file_is_reserved(tmp_path: Path) -> None:
    path = tmp_path / "counter_1.db"
    with written(path):
        state = path.stat()

    assert state.st_size >= 128 * 1024
    assert state.st_blocks * 512 >= state.st_size


def test_written_values_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "counter_1.db"
    with written(path):
        rows = list(NumberFile.read_all_values_from_file(str(path)))
    read = {key: value for key, value, *_ in rows}

    assert read == {key: float(number) for number, key in enumerate(KEYS)}


def test_a_file_that_cannot_be_created_is_kept_in_memory(tmp_path: Path) -> None:
    with written(tmp_path / "missing" / "counter_1.db") as file:
        assert file.read_value(KEYS[-1]) == (float(len(KEYS) - 1), 0.0)


@pytest.mark.slow
def test_a_command_leaves_no_files(tmp_path: Path) -> None:
    command = (
        "import django; django.setup();"
        "from scripts_engine.metrics import SANDBOX_SPAWNS; SANDBOX_SPAWNS.inc();"
        "from django.conf import settings; print(len(list(settings.METRICS_DIR.iterdir())))"
    )
    printed = run_with_metrics(command, tmp_path)

    assert int(printed) > 0
    assert list((tmp_path / "metrics").iterdir()) == []


@pytest.mark.slow
def test_the_numbers_of_an_announced_process_outlive_it(tmp_path: Path) -> None:
    command = (
        "import django; django.setup();from core.metrics.processes import announce; announce('web')"
    )
    run_with_metrics(command, tmp_path)

    assert list((tmp_path / "metrics").glob("counter_*.db")) != []


def run_with_metrics(command: str, data_dir: Path) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "MOONHOOK_DATA_DIR": str(data_dir),
        "METRICS": "on",
    }
    finished = subprocess.run(
        [sys.executable, "-c", command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout
