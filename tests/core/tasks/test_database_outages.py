import logging
from collections.abc import Callable

import pytest

from core.database.unavailable import DatabaseUnavailable
from core.tasks import worker
from core.tasks.worker import run_through_outages


def failing(times: int, done: list[str]) -> Callable[[], None]:
    left = [DatabaseUnavailable("gone")] * times

    def work() -> None:
        if left:
            raise left.pop()
        done.append("done")

    return work


def test_work_resumes_when_the_database_is_back(
    db: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker, "DATABASE_RETRY_SECONDS", 0)
    done: list[str] = []
    with caplog.at_level(logging.ERROR):
        run_through_outages(failing(5, done))

    assert done == ["done"]
    assert caplog.messages == ["Waiting for the database: gone"]
    assert caplog.records[0].exc_info is None


def test_other_errors_are_raised() -> None:
    def work() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        run_through_outages(work)
