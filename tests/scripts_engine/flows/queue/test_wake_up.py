"""Runners are told of new work, and nobody who queues it has to care whether they heard."""

import threading

import psycopg
import pytest
from django.db import connection

from scripts_engine.flows.queue.wake_up import CHANNEL, wake_runners

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor == "sqlite", reason="PostgreSQL notifies"),
]


def test_runners_are_told_even_after_no_thread_could_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parameters = connection.get_connection_params()
    with psycopg.connect(
        host=parameters.get("host"),
        port=parameters.get("port"),
        user=parameters.get("user"),
        password=parameters.get("password"),
        dbname=parameters["dbname"],
        autocommit=True,
    ) as listening:
        listening.execute(f"LISTEN {CHANNEL}")
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            wake_runners()
        wake_runners()

        heard = [each.channel for each in listening.notifies(timeout=30, stop_after=1)]

    assert heard == [CHANNEL]


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
