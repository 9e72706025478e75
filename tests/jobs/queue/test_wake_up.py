"""Runners are told of new work, and nobody who queues it has to care whether they heard."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from jobs.queue.wake_up import RUNS, Listener, wake_runners
from tests.eventually import eventually

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="PostgreSQL notifies"),
]


def a_listener() -> psycopg.Connection[Any]:
    parameters = connection.get_connection_params()
    listening = psycopg.connect(
        host=parameters.get("host"),
        port=parameters.get("port"),
        user=parameters.get("user"),
        password=parameters.get("password"),
        dbname=parameters["dbname"],
        autocommit=True,
    )
    listening.execute(f"LISTEN {RUNS}")
    return listening


def heard_by(listening: psycopg.Connection[Any]) -> list[str]:
    return [each.channel for each in listening.notifies(timeout=30, stop_after=1)]


@contextmanager
def one_file_left() -> Iterator[None]:
    """Enough for a socket, but not for what psycopg waits for it with."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 10
    opened: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
    try:
        with suppress(OSError):
            while True:
                opened.append(os.open("/", os.O_RDONLY))
        os.close(opened.pop())
        yield
    finally:
        for each in opened:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_runners_are_told_even_after_no_thread_could_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with a_listener() as listening:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            wake_runners()
        wake_runners()

        assert heard_by(listening) == [RUNS]


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_runners_are_told_even_after_no_file_could_be_opened() -> None:
    eventually(has_no_notifier)
    with a_listener() as listening:
        with one_file_left():
            wake_runners()
            eventually(has_no_notifier)
        wake_runners()

        assert heard_by(listening) == [RUNS]


def has_no_notifier() -> bool:
    return "queue notifier" not in [each.name for each in threading.enumerate()]


def test_a_listener_hears_even_after_no_file_could_be_opened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[None] = []
    listener = Listener(RUNS, lambda: heard.append(None))
    with one_file_left():
        listener.start()
        eventually(lambda: "Not listening" in caplog.text or has_no_listener())
    try:
        assert not has_no_listener()
        eventually(lambda: heard)
    finally:
        listener.stop()


def has_no_listener() -> bool:
    return "queue listener" not in [each.name for each in threading.enumerate()]
