"""Tries test vectors of senders against the verification."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from hooks.senders import (
    Greeting,
    InvalidVectorsError,
    Refusal,
    Trial,
    Vector,
    Verified,
    read_vectors,
    shipped_vectors,
    try_vector,
)


class Command(BaseCommand):
    help = (
        "Tries calls and handshakes with a known outcome against the verification of senders, each "
        "at its own time. Exits with 1 if one ends otherwise."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="vectors (default: the shipped)")
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object on standard output"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        file = options["file"]
        vectors = shipped_vectors() if file is None else _read(file)
        results = [_result(try_vector(vector)) for vector in vectors]
        failed = [result for result in results if not result["asExpected"]]
        if options["json"]:
            report = {"count": len(results), "failed": len(failed), "vectors": results}
            self.stdout.write(json.dumps(report))
        else:
            for result in results:
                self._say(result)
            self.stdout.write(f"\n{len(results) - len(failed)} of {len(results)} as expected.")
        if failed:
            sys.exit(1)

    def _say(self, result: dict[str, Any]) -> None:
        verdict = "ok  " if result["asExpected"] else "FAIL"
        became = result["reason"] or ("handshake" if result["handshake"] else "verified")
        event_id = result["eventId"] or ""
        self.stdout.write(f"{verdict} {result['id']:<40}{became:<20}{event_id}".rstrip())
        for hint in result["hints"]:
            self.stdout.write(f"     {hint}")
        if result["problem"]:
            self.stdout.write(f"     {result['problem']}")


def _read(path: Path) -> tuple[Vector, ...]:
    try:
        return read_vectors(path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except InvalidVectorsError as error:
        raise CommandError(f"{path}: {error}") from error


def _result(trial: Trial) -> dict[str, Any]:
    outcome = trial.outcome
    return {
        "id": trial.vector.id,
        "sender": trial.vector.rules.preset,
        "asExpected": not trial.problem,
        "ok": not isinstance(outcome, Refusal),
        "handshake": isinstance(outcome, Greeting),
        "reason": str(outcome.reason) if isinstance(outcome, Refusal) else None,
        "detail": outcome.detail if isinstance(outcome, Refusal) else None,
        "eventId": outcome.event_id if isinstance(outcome, Verified) else None,
        "hints": [f"{hint.code}: {hint.sentence}" for hint in trial.hints],
        "problem": trial.problem,
    }
