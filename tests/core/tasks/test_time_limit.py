import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.tasks.worker import OutOfTimeError, time_limit


def test_code_that_takes_too_long_is_interrupted() -> None:
    with pytest.raises(OutOfTimeError, match="took longer"), time_limit(0.05):
        time.sleep(60)


def test_code_that_ends_in_time_is_not_interrupted_later() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        pass

    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_the_alarm_repeats_in_case_the_error_is_swallowed() -> None:
    with time_limit(60):
        _, repeated_after = signal.getitimer(signal.ITIMER_REAL)

    assert repeated_after == 5


def test_in_another_thread_there_is_no_limit() -> None:
    def work() -> str:
        with time_limit(0.01):
            time.sleep(0.05)
        return "done"

    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(work).result() == "done"
