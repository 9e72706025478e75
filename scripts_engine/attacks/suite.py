"""Hostile scripts, each with the outcome that it must have.

The first line of a script names that outcome, the second may set limits:

    -- expect: <kind of outcome>[: text that the error or the reply holds]
    -- limits: wall=0.3 cpu=1
"""

from dataclasses import dataclass
from pathlib import Path

from scripts_engine.sandbox.contract import Job, Outcome
from scripts_engine.sandbox.limits import Limits
from scripts_engine.sandbox.parent.pool import SandboxPool

SCRIPTS = Path(__file__).resolve().parent / "scripts"
# These need http, store and secrets, which `check_sandbox` does not provide.
HOST_SCRIPTS = SCRIPTS / "host"


class NoAttacks(Exception):
    """The folder of the attacks is empty or missing."""


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    source: str
    expected_kind: str
    expected_text: str
    limits: Limits

    @property
    def expected(self) -> str:
        return ": ".join(part for part in (self.expected_kind, self.expected_text) if part)

    def run(self, pool: SandboxPool, tenant: str) -> Outcome:
        job = Job(
            source=self.source.encode(),
            chunk_name="attack",
            params={"body": b"", "method": b"POST"},
            limits=self.limits,
        )
        return pool.run(tenant, job)

    def ended_as_expected(self, outcome: Outcome) -> bool:
        return outcome.kind == self.expected_kind and self.expected_text in text_of(outcome)


def text_of(outcome: Outcome) -> str:
    """The error's message, or the reply's body."""
    if outcome.error is not None:
        return outcome.error.message
    return "" if outcome.reply is None else outcome.reply.body.decode("utf-8", "replace")


def attacks(directory: Path = SCRIPTS) -> list[Attack]:
    """The attacks of a folder, sorted by name. Raises NoAttacks."""
    found = [_attack(path) for path in sorted(directory.glob("*.lua"))]
    if not found:
        raise NoAttacks(f"no attacks in {directory}")
    return found


def _attack(path: Path) -> Attack:
    source = path.read_text()
    first, second = [*source.splitlines(), ""][:2]
    kind, _, text = first.removeprefix("-- expect: ").partition(": ")
    return Attack(path.stem, source, kind, text, _limits(second))


def _limits(line: str) -> Limits:
    if not line.startswith("-- limits: "):
        return Limits()
    given = dict(word.split("=") for word in line.removeprefix("-- limits: ").split())
    return Limits(
        wall_seconds=float(given.get("wall", Limits().wall_seconds)),
        cpu_seconds=int(given.get("cpu", Limits().cpu_seconds)),
    )
