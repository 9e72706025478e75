"""A manifest: an organisation's scripts, hooks and schedules as data, by name; read and written.

What an organisation has is read whole, to be written or compared.
"""

import json
import re
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from accounts.models import Organisation
from core.names import name_key
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.releases.items import (
    Field,
    ProblemCode,
    Refers,
    Values,
    WrongValueError,
    a_name,
)
from scripts_engine.releases.kinds import Kind, State, kinds

VERSION = 1
MAX_BYTES = 512 * 1024
MAX_ITEMS = 1_000
# Of one manifest; more are cut, and the last says so.
MAX_PROBLEMS = 100
WAS = "was"

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_LONGEST_KEY = 64


class Problem(NamedTuple):
    """What is wrong at a place such as ``scripts[3].timeoutSeconds``; ``""`` is the whole."""

    path: str
    code: ProblemCode
    message: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a manifest, whose values are checked one by one."""

    kind: Kind
    path: str
    values: Values
    """Of the fields that it gives; references are still names and digests."""
    was: str | None = None

    @property
    def name(self) -> str:
        name: str = self.values["name"]
        return name

    @property
    def key(self) -> tuple[str, ...]:
        """Equal for items of one kind that name the same object."""
        within = tuple(name_key(self.values[each]) for each in self.kind.unique_within)
        return (*within, name_key(self.name))

    @property
    def old_key(self) -> tuple[str, ...] | None:
        return None if self.was is None else (*self.key[:-1], name_key(self.was))


class Problems:
    """Collects problems, as many as are worth reading."""

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self.count = 0

    def add(self, path: str, code: ProblemCode, message: str) -> None:
        if self.count < MAX_PROBLEMS:
            self.found.append(Problem(path, code, message))
        elif self.count == MAX_PROBLEMS:
            message = f"There are more than {MAX_PROBLEMS} problems."
            self.found.append(Problem("", ProblemCode.TOO_MANY_PROBLEMS, message))
        self.count += 1


# --- Reading --------------------------------------------------------------------------------------


def parse_manifest(document: object, problems: Problems) -> list[Item]:
    """Returns the items without problems of their own, in the order of kinds and of the document.

    Takes any JSON. Adds one problem for each mistake. Reads nothing from the database.
    """
    if (size := _size_of(document)) is None or size > MAX_BYTES:
        message = f"A manifest has at most {MAX_BYTES // 1024} KiB."
        problems.add("", ProblemCode.TOO_LARGE, message)
        return []
    if not isinstance(document, dict):
        problems.add("", ProblemCode.WRONG_TYPE, "Enter an object.")
        return []
    sections = {kind.section: kind for kind in kinds()}
    for key in sorted(document.keys() - {"version", *sections}):
        problems.add(_below("", key), ProblemCode.UNKNOWN_KEY, "There is no such key.")
    _check_version(document, problems)
    lists = {name: document[name] for name in sections if name in document}
    for name in [name for name, given in lists.items() if not isinstance(given, list)]:
        problems.add(name, ProblemCode.WRONG_TYPE, "Enter a list.")
        del lists[name]
    if sum(map(len, lists.values())) > MAX_ITEMS:
        problems.add("", ProblemCode.TOO_MANY_ITEMS, f"A manifest has at most {MAX_ITEMS:,} items.")
        return []
    return [
        item
        for name, given in lists.items()
        for item in _unlike(_items(sections[name], given, problems), problems)
    ]


def _size_of(document: object) -> int | None:
    """Bytes of the shortest JSON; ``None`` for what is nested too deeply."""
    try:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return None
    return len(text.encode("utf-8", "surrogatepass"))


def _check_version(document: Mapping[str, Any], problems: Problems) -> None:
    if "version" not in document:
        problems.add("version", ProblemCode.REQUIRED, "Enter the version of the form, 1.")
    elif not isinstance(version := document["version"], int) or isinstance(version, bool):
        problems.add("version", ProblemCode.WRONG_TYPE, "Enter a whole number.")
    elif version != VERSION:
        problems.add("version", ProblemCode.UNSUPPORTED_VERSION, "Only version 1 is known.")


def _items(kind: Kind, given: Sequence[object], problems: Problems) -> Iterator[Item]:
    fields = {field.name: field for field in kind.fields}
    for place, item in enumerate(given):
        path = f"{kind.section}[{place}]"
        if not isinstance(item, dict):
            problems.add(path, ProblemCode.WRONG_TYPE, "Enter an object.")
            continue
        before = problems.count
        values = dict(_checked(fields, item, path, problems))
        was = _checked_was(item, path, problems)
        if problems.count == before:
            yield Item(kind, path, values, was)


def _checked(
    fields: Mapping[str, Field], item: Mapping[str, object], path: str, problems: Problems
) -> Iterator[tuple[str, Any]]:
    for key in sorted(item.keys() - fields.keys() - {WAS}):
        problems.add(_below(path, key), ProblemCode.UNKNOWN_KEY, "There is no such key.")
    for name, field in fields.items():
        if name in item:
            try:
                yield name, field.check(item[name])
            except WrongValueError as error:
                problems.add(f"{path}.{name}", error.code, str(error))
        elif field.is_required:
            problems.add(f"{path}.{name}", ProblemCode.REQUIRED, "This is required.")


def _checked_was(item: Mapping[str, object], path: str, problems: Problems) -> str | None:
    if WAS not in item:
        return None
    try:
        return a_name(item[WAS])
    except WrongValueError as error:
        problems.add(f"{path}.{WAS}", error.code, str(error))
        return None


def _unlike(items: Iterator[Item], problems: Problems) -> Iterator[Item]:
    """The items without those that name an object again, by name or by ``was``."""
    found = list(items)
    keys = {item.key for item in found}
    seen: set[tuple[str, ...]] = set()
    renamed: set[tuple[str, ...]] = set()
    for item in found:
        old = item.old_key if item.old_key != item.key else None
        if item.key in seen:
            message = "Another item has this name."
            problems.add(f"{item.path}.name", ProblemCode.DUPLICATE, message)
        elif old in renamed or old in keys:
            message = "Another item names the object of this name."
            problems.add(f"{item.path}.{WAS}", ProblemCode.DUPLICATE, message)
        else:
            yield item
        seen.add(item.key)
        if old is not None:
            renamed.add(old)


def _below(path: str, key: object) -> str:
    """The path of a key that a client chose, shortened where it is long or strange."""
    text = str(key)
    if _PLAIN_KEY.fullmatch(text):
        return f"{path}.{text}" if path else text
    return f"{path}[{json.dumps(text[:_LONGEST_KEY])}]"


class Known(NamedTuple):
    """Everything that releases of an organisation change, by kind and id."""

    states: Mapping[str, Mapping[uuid.UUID, State]]
    digests: Mapping[str, str]
    """Of the sources of live and pinned versions, by version."""

    @property
    def scripts(self) -> Mapping[uuid.UUID, State]:
        return self.states[kinds()[0].name]

    def are_in_manifests(self, kind: Kind) -> dict[uuid.UUID, State]:
        """Without scripts that never went live, and what belongs to them."""
        scripts = self.scripts
        return {
            object_id: state
            for object_id, state in self.states[kind.name].items()
            if scripts[kind.script_of(object_id, state)]["version"] is not None
        }


def known_objects(organisation: Organisation) -> Known:
    """Takes a fixed number of statements."""
    script_ids = set(Script.objects.of_organisation(organisation).values_list("pk", flat=True))
    states = {
        kind.name: kind.states(organisation, kind.of_scripts(organisation, script_ids))
        for kind in kinds()
    }
    scripts = states[kinds()[0].name]
    for kind in kinds():
        # A script may have been deleted in between.
        states[kind.name] = {
            object_id: state
            for object_id, state in states[kind.name].items()
            if kind.script_of(object_id, state) in scripts
        }
    versions = {
        version
        for kind in kinds()
        for state in states[kind.name].values()
        if (version := kind.version_of(state)) is not None
    }
    rows = ScriptVersion.objects.filter(pk__in=versions).order_by()
    digests = {str(pk): digest for pk, digest in rows.values_list("pk", "source_digest")}
    return Known(states, digests)


def written_manifest(
    organisation: Organisation,
    *,
    script_ids: Collection[uuid.UUID] | None = None,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The scripts that are live, their hooks and schedules; in the order of their names.

    A plan of the same organisation changes nothing.

    ``script_ids`` limits it to these scripts and what belongs to them. Fields in ``without``, and
    those with their default, are left out. Takes a fixed number of statements.
    """
    known = known_objects(organisation)
    sections = {
        kind.section: [
            item
            for _, item in sorted(
                (_order(known, kind, object_id, state), _item(known, kind, state, without))
                for object_id, state in known.are_in_manifests(kind).items()
                if script_ids is None or kind.script_of(object_id, state) in script_ids
            )
        ]
        for kind in kinds()
    }
    return {"version": VERSION, **sections}


def _order(known: Known, kind: Kind, object_id: uuid.UUID, state: State) -> tuple[str, ...]:
    script = known.scripts[kind.script_of(object_id, state)]
    within = (name_key(script["name"]),) if kind.unique_within else ()
    return (*within, name_key(state["name"]))


def _item(known: Known, kind: Kind, state: State, without: Collection[str]) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    for field in kind.fields:
        value = state[field.of_state]
        if value is not None and field.refers_to is Refers.SCRIPT:
            value = known.scripts[uuid.UUID(value)]["name"]
        elif value is not None and field.refers_to is not None:
            value = known.digests[value]
        values[field.name] = value
    return {
        field.name: values[field.name]
        for field in kind.fields
        if field.is_written
        and field.name not in without
        and (field.is_required or field.is_kept or values[field.name] != field.default(values))
    }
