"""Connections to a server that was the primary: two PostgreSQL on loopback, which fail over."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from core.database.postgresql import connection as connection_module
from core.database.postgresql.connection import TimeLimitedConnection
from core.database.postgresql.primary import CONNECT_SECONDS, Primary
from jobs.queue import wake_up
from tests.eventually import eventually
from tests.private_servers import PrivatePostgres, private_pair

Pair = tuple[PrivatePostgres, PrivatePostgres]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with private_pair() as pair:
        yield pair


@pytest.fixture(autouse=True)
def primary(monkeypatch: pytest.MonkeyPatch) -> Primary:
    """As in a process that has not connected yet."""
    primary = Primary()
    monkeypatch.setattr(connection_module, "primary", primary)
    return primary


def connect(pair: Pair) -> TimeLimitedConnection:
    return TimeLimitedConnection.connect(
        host="127.0.0.1,127.0.0.1",
        port=",".join(str(server.port) for server in pair),
        user="postgres",
        dbname="postgres",
        target_session_attrs="read-write",
        autocommit=True,
    )


def test_the_known_primary_is_tried_first(primary: Primary) -> None:
    parameters = {"host": "one,two,three", "port": "1,2,3", "user": "u"}
    before = primary.first(parameters)
    primary.note(("two", "2"))
    after = primary.first(parameters)

    assert (before["host"], before["port"]) == ("one,two,three", "1,2,3")
    assert (after["host"], after["port"]) == ("two,one,three", "2,1,3")
    assert (after["user"], after["connect_timeout"]) == ("u", CONNECT_SECONDS)


def test_parameters_of_a_single_server_stay(primary: Primary) -> None:
    parameters: dict[str, Any] = {"host": "one", "connect_timeout": 5}
    primary.note(("two", "5432"))

    assert primary.first(parameters) == parameters


@pytest.mark.slow
def test_a_wait_for_a_frozen_server_ends_when_its_standby_is_promoted(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    waiting = connect(pair)
    monkeypatch.setattr(waiting, "max_wait_seconds", None)
    first.freeze()
    second.promote()
    with pytest.raises(psycopg.OperationalError, match="another server has become the primary"):
        waiting.execute("SELECT 1")
    with connect(pair) as after:
        port = after.info.port

    assert waiting.closed
    assert port == second.port


@pytest.mark.slow
def test_a_slow_statement_of_the_primary_is_not_given_up(pair: Pair) -> None:
    with connect(pair) as waiting:
        waiting.execute("SELECT pg_sleep(2.5)")

        assert not waiting.is_demoted()
        assert not waiting.closed


@pytest.mark.slow
def test_idle_connections_are_demoted_with_their_server(pair: Pair) -> None:
    first, second = pair
    with connect(pair) as idle, connect(pair) as used:
        before = (idle.is_demoted(), used.is_demoted())
        first.become_read_only()
        used.execute("SELECT 1")
        read_only = (idle.is_demoted(), used.is_demoted())
        second.promote()
        with connect(pair):
            after = (idle.is_demoted(), used.is_demoted())

    assert before == (False, False)
    assert read_only == (False, True)
    assert after == (True, True)


@pytest.mark.slow
def test_a_listener_and_a_notifier_follow_the_primary(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    monkeypatch.setattr(wake_up, "_connector", lambda: lambda: connect(pair))
    heard: list[float] = []
    listener = wake_up.Listener(wake_up.RUNS, lambda: heard.append(time.monotonic()))
    listener.start()
    try:
        eventually(lambda: heard)
        first.freeze()
        second.promote()
        # As another part of the process finds the new primary.
        connect(pair).close()
        listeners = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
        eventually(lambda: second.ask(listeners) == 1)
        before = len(heard)
        eventually(lambda: wake_up._notifier.notify(wake_up.RUNS) or len(heard) > before)
    finally:
        listener.stop()
