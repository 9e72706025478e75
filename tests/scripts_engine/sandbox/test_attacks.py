"""Every script of the attack suite has the outcome that its first line names."""

from __future__ import annotations

import pytest

from scripts_engine.sandbox import (
    Attack,
    PairAttack,
    SandboxPool,
    pair_attacks,
    script_attacks,
    text_of,
)

from .conftest import run_in

ATTACKS = script_attacks()
PAIRS = pair_attacks()


@pytest.fixture(scope="module")
def attacked_pool():
    pool = SandboxPool(size=4)
    yield pool
    pool.close()


def test_the_suite_has_attacks():
    assert len(ATTACKS) >= 60


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_ends_as_expected_without_harm(attacked_pool: SandboxPool, attack: Attack):
    outcome = attack.run(attacked_pool, "mallory")
    assert outcome.kind == attack.expected_kind
    assert attack.expected_text in text_of(outcome)
    honest = run_in(attacked_pool, "return ToJson(FromJson('[1]'))", tenant="acme")
    assert honest.reply.body == b"[1]"


@pytest.mark.parametrize(
    "attack",
    [attack for attack in ATTACKS if attack.name.startswith("state_")],
    ids=lambda attack: attack.name,
)
def test_a_second_run_in_the_same_child_finds_nothing_of_the_first(
    attacked_pool: SandboxPool, attack: Attack
):
    first, second = (attack.run(attacked_pool, "mallory") for _ in range(2))
    assert text_of(first) == text_of(second) == attack.expected_text


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_run_finds_nothing_that_another_left_in_its_state(
    attacked_pool: SandboxPool, pair: PairAttack
):
    outcome = pair.run(attacked_pool, "trudy")
    assert (outcome.kind, pair.second.expected_text) == ("succeeded", text_of(outcome))
