"""The attacks that need host functions, one by one, without a server around them."""

import pytest

from accounts.models import Organisation
from scripts_engine.sandbox import Attack, script_attacks
from scripts_engine.sandbox.attacks.suite import HOST_SCRIPTS
from tests.factories import make_script, run_lua

# The flood takes long; tests/end_to_end/test_attacks.py includes it.
ATTACKS = [attack for attack in script_attacks(HOST_SCRIPTS) if attack.name != "store_flood"]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_through_a_host_function_ends_as_expected(
    acme: Organisation, globex: Organisation, attack: Attack
) -> None:
    make_script(globex, name="honest")
    run_lua(globex, 'store.set("honest", 1) store.set("honest_once", 1)')
    run = run_lua(acme, attack.source, timeout_seconds=attack.limits.wall_seconds)

    assert run.status == attack.expected_kind
    assert attack.expected_text in run.error_message + bytes(run.response_body).decode()
