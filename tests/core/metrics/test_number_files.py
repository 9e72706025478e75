"""Metrics files that reserve their disk space."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from prometheus_client import values

from core.metrics.number_files import NumberFile

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
