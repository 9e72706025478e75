"""Attacks on the worker, each with its expected result."""

import pytest

from scripts_engine.management.commands.check_sandbox import REFUSED, host_attacks
from scripts_engine.sandbox import WorkerAttack, child_attacks

ATTACKS = [*child_attacks(), *host_attacks()]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_worker_withstands_an_attack(attack: WorkerAttack) -> None:
    assert attack.run() == attack.expected


def test_an_attack_that_costs_the_worker_too_much_memory_has_succeeded() -> None:
    def unfold() -> str:
        return REFUSED if bytearray(100 * 1024 * 1024) else ""

    assert WorkerAttack("unfold", REFUSED, unfold).run() == "refused, with 100 MiB of memory"
