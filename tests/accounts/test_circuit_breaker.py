import time

import pytest

from accounts.rate_limits.circuit_breaker import CircuitBreaker

LONG = 3600


def test_a_closed_circuit_allows_every_call() -> None:
    circuit = CircuitBreaker(open_seconds=LONG)

    assert [circuit.allows_call() for _ in range(3)] == [True, True, True]


def test_an_open_circuit_allows_no_call() -> None:
    circuit = CircuitBreaker(open_seconds=LONG)
    circuit.record_failure()

    assert not circuit.allows_call()


def test_a_half_open_circuit_allows_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = CircuitBreaker(open_seconds=LONG)
    circuit.record_failure()
    later = time.monotonic() + LONG + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)

    assert [circuit.allows_call() for _ in range(3)] == [True, False, False]


def test_a_success_closes_the_circuit() -> None:
    circuit = CircuitBreaker(open_seconds=LONG)
    circuit.record_failure()

    assert circuit.record_success()
    assert circuit.allows_call()


def test_only_the_change_of_state_is_reported() -> None:
    circuit = CircuitBreaker(open_seconds=LONG)

    assert [circuit.record_failure(), circuit.record_failure()] == [True, False]
    assert [circuit.record_success(), circuit.record_success()] == [True, False]
