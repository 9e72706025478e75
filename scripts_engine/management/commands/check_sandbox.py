"""Reports the sandbox's layers, and runs the attacks against it."""

import json
import sys
import time
import uuid
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scripts_engine.host.handler import RunHost
from scripts_engine.host.http import HttpCapability
from scripts_engine.redaction import Redactor
from scripts_engine.runs.rows import summaries_of
from scripts_engine.sandbox import (
    Attack,
    CallNote,
    HostCall,
    HostCallError,
    NoAttacks,
    PairAttack,
    SandboxPool,
    StateNotKept,
    WorkerAttack,
    active_layers,
    child_attacks,
    pair_attacks,
    script_attacks,
    text_of,
)

_TENANT = "check_sandbox"
REFUSED = "refused"
BOUNDED = "bounded"


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
            suite: list[Attack | PairAttack] = [*script_attacks(), *pair_attacks()]
        except NoAttacks as error:
            if options["json"]:
                self.stdout.write(
                    json.dumps({"layers": layers, "attacks": [], "error": str(error)})
                )
            raise CommandError(f"No attack was run: {error}.") from error
        results = self._run_script_attacks(suite) + [
            self._run_worker_attack(each) for each in (*child_attacks(), *host_attacks())
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


def host_attacks() -> list[WorkerAttack]:
    """The attacks on host calls and records, sorted by name."""
    return sorted(_ATTACKS, key=lambda attack: attack.name)


def _many_headers() -> str:
    headers = {b"X-%d" % number: b"1" for number in range(9000)}
    options = {b"method": b"GET", b"url": b"http://192.0.2.1/", b"headers": headers}
    try:
        HttpCapability(uuid.uuid4()).request(options, deadline=time.monotonic() + 10)
    except HostCallError as error:
        return REFUSED if "headers" in str(error) else f"tried: {error}"
    return "sent"


def _other_method() -> str:
    """A child that was taken over calls http.get for a DELETE."""
    options = {b"method": b"DELETE", b"url": b"http://192.0.2.1/", b"headers": {}}
    deadline = time.monotonic() + 10
    try:
        RunHost(uuid.uuid4())("http.get", [options], deadline=deadline, note=CallNote())
    except HostCallError as error:
        return REFUSED if "wrong arguments" in str(error) else f"tried: {error}"
    return "sent"


def _disguised_secret() -> str:
    """A secret in a URL, percent-encoded or in another case."""
    calls = [
        HostCall("http.get", 0, 0, None, subject=b"GET https://%b.example/%b?q" % (host, path))
        for host, path in ((b"a", b"P%2561ss%2Fword"), (b"pass/WORD".replace(b"/", b"%2f"), b""))
    ]
    kept = list(summaries_of(calls, Redactor([b"Pass/word"]), 1000))
    return REFUSED if kept == ["GET [redacted]"] * 2 else f"kept: {kept}"


def _redaction_bomb() -> str:
    """Secrets that are part of the mark that replaces other secrets."""
    secrets = [b"[redacted]"[:length] for length in range(4, 11)] + [b"shown-secret"]
    shown = b"shown-secret-" * 700
    kept = Redactor(secrets).bytes(shown, len(shown))
    return BOUNDED if len(kept) <= len(shown) else f"{len(kept)} bytes kept of {len(shown)}"


def _overlapping_secrets() -> str:
    kept = Redactor([b"first-and", b"and-second"]).bytes(b"<first-and-second>", 100)
    return REFUSED if kept == b"<[redacted]>" else f"kept: {kept!r}"


_ATTACKS = [
    WorkerAttack("http_headers_by_the_thousand", REFUSED, _many_headers),
    WorkerAttack("http_get_with_another_method", REFUSED, _other_method),
    WorkerAttack("record_of_a_disguised_secret", REFUSED, _disguised_secret),
    WorkerAttack("record_of_a_redaction_bomb", BOUNDED, _redaction_bomb),
    WorkerAttack("record_of_overlapping_secrets", REFUSED, _overlapping_secrets),
]
