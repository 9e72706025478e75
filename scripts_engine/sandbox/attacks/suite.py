"""Hostile scripts, each with the outcome that it must have.

A file holds one family of attacks. Each starts with its name; its next line, the first that runs,
names the outcome, and the one after that may set limits:

    -- attack: <name>
    -- expect: <kind of outcome>[: text that the error or the reply holds]
    -- limits: wall=0.3 cpu=1 memory=1

Limits not set are those of every run, except for the wall limit: that is the longest which a
script may have, so that no attack runs out of time just because the machine is busy.

Libraries follow the script. Each chunk may require each of them by its name:

    -- library: <name>
    -- library: <name> 1 to <n>     n of them, with their number in the name and for NUMBER

Each attack in `pairs.lua` is two scripts, separated by the line `-- the next run`: the first leaves
something behind, and the second, which runs next in the same Lua state, looks for it.
"""

import re
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from scripts_engine.sandbox.contract import NO_LIBRARIES, Job, Libraries, Library, Outcome
from scripts_engine.sandbox.limits import MAX_WALL_SECONDS, MIB, Limits
from scripts_engine.sandbox.parent.pool import SandboxPool

_FOLDER = Path(__file__).resolve().parent
SCRIPTS = _FOLDER / "scripts"
# These need http, queue, store and secrets, which `check_sandbox` does not provide.
HOST_SCRIPTS = _FOLDER / "host.lua"
PAIRS = _FOLDER / "pairs.lua"
_START = "-- attack: "
_LIBRARY = re.compile(r"^-- library: (\w+)(?: 1 to (\d+))?\n", re.MULTILINE)
_SECOND = "-- the next run\n"
# A first run that a busy machine slows down costs its state.
_TRIES = 20


class NoAttacks(Exception):
    """There are no attacks where they are expected."""


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    source: str
    expected_kind: str
    expected_text: str
    limits: Limits
    libraries: Libraries = NO_LIBRARIES

    @property
    def expected(self) -> str:
        return ": ".join(part for part in (self.expected_kind, self.expected_text) if part)

    def run(self, pool: SandboxPool, tenant: str) -> Outcome:
        job = Job(
            source=self.source.encode(),
            chunk_name="attack",
            params={"body": b"", "method": b"POST"},
            limits=self.limits,
            libraries=self.libraries,
        )
        return pool.run(tenant, job)

    def ended_as_expected(self, outcome: Outcome) -> bool:
        return outcome.kind == self.expected_kind and self.expected_text in text_of(outcome)


class StateNotKept(Exception):
    """The second run of a pair had a new Lua state, so that it proves nothing."""


@dataclass(frozen=True, slots=True)
class PairAttack:
    """Two runs in one Lua state, of which the second looks for what the first has left."""

    first: Attack
    second: Attack

    @property
    def name(self) -> str:
        return self.second.name

    @property
    def expected(self) -> str:
        return self.second.expected

    def run(self, pool: SandboxPool, tenant: str) -> Outcome:
        """The outcome of the second run. Raises StateNotKept.

        The tenant must have no other runs meanwhile.
        """
        for _ in range(_TRIES):
            pool.run(tenant, Job(source=b"", chunk_name="warm-up"))
            spawned = pool.stats().spawned
            self.first.run(pool, tenant)
            is_kept = pool.count_runs_of_state(tenant) > 0
            outcome = self.second.run(pool, tenant)
            if is_kept and pool.stats().spawned == spawned:
                return outcome
        raise StateNotKept(f"{self.name}: the first run always cost its state")

    def ended_as_expected(self, outcome: Outcome) -> bool:
        return self.second.ended_as_expected(outcome)


def text_of(outcome: Outcome) -> str:
    """The error's message, or the reply's body."""
    if outcome.error is not None:
        return outcome.error.message
    return "" if outcome.reply is None else outcome.reply.body.decode("utf-8", "replace")


def script_attacks(place: Path = SCRIPTS) -> list[Attack]:
    """The attacks in a file, or in those of a folder, sorted by name. Raises NoAttacks."""
    return [_attack(name, text) for name, text in _named(place)]


def pair_attacks() -> list[PairAttack]:
    """The attacks in two runs, sorted by name. Raises NoAttacks."""
    return [_pair(name, text) for name, text in _named(PAIRS)]


def _named(place: Path) -> list[tuple[str, str]]:
    """The name and the text of each attack in a file or folder. Raises NoAttacks."""
    files = [place] if place.is_file() else place.glob("*.lua")
    found = [
        (name, text.rstrip() + "\n")
        for file in files
        for part in f"\n{file.read_text()}".split(f"\n{_START}")[1:]
        for name, _, text in [part.partition("\n")]
    ]
    if not found:
        raise NoAttacks(f"no attacks in {place}")
    return sorted(found)


def _attack(name: str, text: str) -> Attack:
    source, libraries = _with_libraries(text)
    first, second = [*source.splitlines(), ""][:2]
    kind, _, expected = first.removeprefix("-- expect: ").partition(": ")
    return Attack(name, source, kind, expected, _limits(second), libraries)


def _with_libraries(text: str) -> tuple[str, Libraries]:
    """The source of the script, and the libraries that follow it."""
    source, *parts = _LIBRARY.split(text)
    sources: dict[bytes, bytes] = {}
    for name, last, part in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        for number in range(1, int(last) + 1) if last else [""]:
            numbered = part.replace("NUMBER", str(number)) if last else part
            sources[f"{name}{number}".encode()] = numbered.encode()
    whole = sha256("\0".join(parts[2::3]).encode()).digest()
    keys = {name: sha256(whole + name).digest() for name in sources}
    libraries = {
        keys[name]: Library(name.decode(), library, keys) for name, library in sources.items()
    }
    return source, Libraries(keys, libraries)


def _pair(name: str, text: str) -> PairAttack:
    leave, _, find = text.partition(_SECOND)
    first = _attack(f"pair_{name}", leave)
    second, libraries = _with_libraries(find)
    return PairAttack(first, replace(first, source=second, libraries=libraries))


def _limits(line: str) -> Limits:
    words = line.removeprefix("-- limits: ").split() if line.startswith("-- limits: ") else []
    given = dict(word.split("=") for word in words)
    return Limits(
        wall_seconds=float(given.get("wall", MAX_WALL_SECONDS)),
        cpu_seconds=int(given.get("cpu", Limits().cpu_seconds)),
        lua_memory_bytes=int(given.get("memory", Limits().lua_memory_bytes // MIB)) * MIB,
    )
