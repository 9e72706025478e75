"""Reports the sandbox's layers, and runs the attacks against it."""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scripts_engine.attacks.on_the_worker import WorkerAttack, worker_attacks
from scripts_engine.attacks.suite import (
    Attack,
    NoAttacks,
    PairAttack,
    StateNotKept,
    attacks,
    pair_attacks,
    text_of,
)
from scripts_engine.sandbox.parent.layers import active_layers
from scripts_engine.sandbox.parent.pool import SandboxPool

_TENANT = "check_sandbox"


class Command(BaseCommand):
    help = "Checks every isolation layer of the sandbox, and runs every attack against it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object on standard output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._is_quiet = options["json"]
        layers = self._check_layers()
        try:
            suite: list[Attack | PairAttack] = [*attacks(), *pair_attacks()]
        except NoAttacks as error:
            if options["json"]:
                self.stdout.write(
                    json.dumps({"layers": layers, "attacks": [], "error": str(error)})
                )
            raise CommandError(f"No attack was run: {error}.") from error
        results = self._run_script_attacks(suite) + [
            self._run_worker_attack(each) for each in worker_attacks()
        ]
        report = {"layers": layers, "attacks": results}
        failed = [attack for attack in report["attacks"] if not attack["asExpected"]]
        if options["json"]:
            self.stdout.write(json.dumps(report))
        else:
            count = len(report["attacks"])
            self._say(f"\n{count - len(failed)} of {count} attacks ended as expected.")
        if failed:
            sys.exit(1)

    def _check_layers(self) -> list[dict[str, Any]]:
        layers = active_layers()
        for layer in layers:
            state = "active" if layer.is_active else f"NOT ACTIVE: {layer.detail}"
            self._say(f"{layer.name:<16}{state}")
        return [
            {"name": str(layer.name), "active": layer.is_active, "detail": layer.detail}
            for layer in layers
        ]

    def _run_script_attacks(self, suite: Sequence[Attack | PairAttack]) -> list[dict[str, Any]]:
        pool = SandboxPool(size=2)
        try:
            return [self._run_script_attack(pool, attack) for attack in suite]
        finally:
            pool.close()

    def _run_script_attack(self, pool: SandboxPool, attack: Attack | PairAttack) -> dict[str, Any]:
        started = time.monotonic()
        try:
            outcome = attack.run(pool, _TENANT)
        except StateNotKept as error:
            seconds = time.monotonic() - started
            said = str(error)
            return self._reported(attack, "not proven", said, as_expected=False, seconds=seconds)
        return self._reported(
            attack,
            str(outcome.kind),
            text_of(outcome),
            as_expected=attack.ended_as_expected(outcome),
            seconds=time.monotonic() - started,
        )

    def _run_worker_attack(self, attack: WorkerAttack) -> dict[str, Any]:
        started = time.monotonic()
        outcome = attack.run()
        return self._reported(
            attack,
            outcome[:200],
            outcome,
            as_expected=outcome == attack.expected,
            seconds=time.monotonic() - started,
        )

    def _reported(
        self,
        attack: Attack | PairAttack | WorkerAttack,
        outcome: str,
        said: str,
        *,
        as_expected: bool,
        seconds: float,
    ) -> dict[str, Any]:
        verdict = "ok  " if as_expected else "FAIL"
        self._say(f"{verdict} {attack.name:<44}{outcome:<16}{seconds * 1000:8.1f} ms")
        if not as_expected:
            self._say(f"     expected {attack.expected}; got {said[:200]}")
        return {
            "name": attack.name,
            "expected": attack.expected,
            "outcome": outcome,
            "asExpected": as_expected,
            "seconds": round(seconds, 4),
        }

    def _say(self, line: str) -> None:
        if not self._is_quiet:
            self.stdout.write(line)
