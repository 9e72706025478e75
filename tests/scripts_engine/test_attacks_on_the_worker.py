"""Attacks on the worker that runs the sandbox, each with its expected result."""

import pytest

from scripts_engine.attacks.on_the_worker import REFUSED, WorkerAttack, worker_attacks


@pytest.mark.parametrize("attack", worker_attacks(), ids=lambda attack: attack.name)
def test_an_attack_on_the_worker_ends_as_expected(attack: WorkerAttack) -> None:
    assert attack.run() == attack.expected


def test_an_attack_that_costs_the_worker_too_much_memory_is_not_as_expected() -> None:
    def unfold() -> str:
        return REFUSED if bytearray(100 * 1024 * 1024) else ""

    assert WorkerAttack("unfold", REFUSED, unfold).run() == "refused, with 100 MiB of memory"
