"""The sandbox's report card."""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scripts_engine.attacks.on_the_worker import WorkerAttack, worker_attacks
from scripts_engine.attacks.suite import Attack, NoAttacks, attacks, text_of
from scripts_engine.sandbox.parent.layers import active_layers
from scripts_engine.sandbox.parent.pool import SandboxPool

_TENANT = "check_sandbox"


class Command(BaseCommand):
    help = "Tries every layer of the sandbox's lockdown, and every attack of the suite on it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object on standard output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self._is_quiet = options["json"]
        layers = self._try_layers()
        try:
            suite = attacks()
        except NoAttacks as error:
            if options["json"]:
                self.stdout.write(
                    json.dumps({"layers": layers, "attacks": [], "error": str(error)})
                )
            raise CommandError(f"No attack was tried: {error}.") from error
        tried = self._try_scripts(suite) + [self._try_on_worker(each) for each in worker_attacks()]
        report = {"layers": layers, "attacks": tried}
        failed = [attack for attack in report["attacks"] if not attack["asExpected"]]
        if options["json"]:
            self.stdout.write(json.dumps(report))
        else:
            count = len(report["attacks"])
            self._say(f"\n{count - len(failed)} of {count} attacks ended as they must.")
        if failed:
            sys.exit(1)

    def _try_layers(self) -> list[dict[str, Any]]:
        layers = active_layers()
        for layer in layers:
            state = "active" if layer.is_active else f"NOT ACTIVE: {layer.detail}"
            self._say(f"{layer.name:<16}{state}")
        return [
            {"name": str(layer.name), "active": layer.is_active, "detail": layer.detail}
            for layer in layers
        ]

    def _try_scripts(self, suite: Sequence[Attack]) -> list[dict[str, Any]]:
        pool = SandboxPool(size=2)
        try:
            return [self._try_script(pool, attack) for attack in suite]
        finally:
            pool.close()

    def _try_script(self, pool: SandboxPool, attack: Attack) -> dict[str, Any]:
        started = time.monotonic()
        outcome = attack.run(pool, _TENANT)
        return self._reported(
            attack,
            str(outcome.kind),
            text_of(outcome),
            as_expected=attack.ended_as_expected(outcome),
            seconds=time.monotonic() - started,
        )

    def _try_on_worker(self, attack: WorkerAttack) -> dict[str, Any]:
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
        attack: Attack | WorkerAttack,
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
