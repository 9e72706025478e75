"""Programs: sources with all libraries that a run may load, as the sandbox takes them.

A run loads the versions to which its own version is pinned, and those to which they are.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import NamedTuple

from accounts.models import Organisation
from scripts_engine.libraries import requirements_below, resolve
from scripts_engine.models import RequiredLibrary, Script, ScriptVersion
from scripts_engine.sandbox import NO_LIBRARIES, Libraries, Library


class Program(NamedTuple):
    """A source with all libraries that it may load."""

    source: bytes
    libraries: Libraries = NO_LIBRARIES


# Of a script without a version.
NO_PROGRAM = Program(b"")


# Of at most ``MAX_PROGRAM_BYTES`` each, in each process.
@lru_cache(maxsize=256)
def program_of(version_id: uuid.UUID) -> Program:
    """What a run of the version needs, read by two statements once while it is in use.

    For versions that do not change: those that were published, and drafts that have run.
    """
    return _program(None, version_id, requirements_below([version_id]))


def freeze(version_id: uuid.UUID) -> None:
    """Keeps a version that is about to run as it is, with the drafts of libraries that it requires.

    A frozen draft is not changed in place, but its author's next one is another version.
    """
    frozen: set[uuid.UUID] = set()
    found = {version_id}
    # What a version requires may change until it is frozen itself.
    while found:
        ScriptVersion.objects.filter(pk__in=found, published_at=None).update(has_run=True)
        frozen |= found
        below = requirements_below([version_id])
        found = {required.library_version_id for required in below} - frozen


def program_of_source(
    organisation: Organisation, source: str, *, script: Script | None = None, draft_of: str = ""
) -> Program:
    """What a run of a source needs that is not saved. Raises ``SourceError``."""
    pins = resolve(organisation, source, script=script, draft_of=draft_of)
    if not pins:
        return Program(source.encode())
    own = uuid.UUID(int=0)
    direct = [
        RequiredLibrary(version_id=own, name=name, library_version_id=version.pk)
        for name, version in pins.items()
    ]
    nested = requirements_below({version.pk for version in pins.values()})
    return _program(source, own, [*direct, *nested])


def _program(
    source: str | None, version_id: uuid.UUID, requirements: Sequence[RequiredLibrary]
) -> Program:
    """The program of a version, or of a source that is not saved.

    ``requirements`` are all of its own and of its libraries.
    """
    below: dict[uuid.UUID, dict[str, uuid.UUID]] = {version_id: {}}
    names: dict[uuid.UUID, str] = {}
    for required in requirements:
        library_id, name = required.library_version_id, required.name
        below.setdefault(required.version_id, {})[name] = library_id
        names[library_id] = min(name, names.get(library_id, name))
    wanted = {*names, version_id} if source is None else names.keys()
    rows = ScriptVersion.objects.filter(pk__in=wanted).values_list("pk", "number", "source")
    texts = {pk: (number, text) for pk, number, text in rows}
    if source is None:
        if version_id not in texts:
            raise ScriptVersion.DoesNotExist(f"version {version_id}")
        source = texts[version_id][1]
    graph = {each: set(libraries.values()) for each, libraries in below.items()}
    keys: dict[uuid.UUID, bytes] = {}
    by_key: dict[bytes, Library] = {}
    for each in TopologicalSorter(graph).static_order():
        if each == version_id:
            continue
        number, text = texts[each]
        name = names[each]
        if list(names.values()).count(name) > 1:
            name = f"{name} (version {number})"
        library = Library(name, text.encode(), _keys(below.get(each, {}), keys))
        keys[each] = _key_of(each, library)
        by_key[keys[each]] = library
    if not by_key:
        return Program(source.encode())
    return Program(source.encode(), Libraries(_keys(below[version_id], keys), by_key))


def _keys(names: Mapping[str, uuid.UUID], keys: Mapping[uuid.UUID, bytes]) -> dict[bytes, bytes]:
    return {name.encode(): keys[version_id] for name, version_id in names.items()}


def _key_of(version_id: uuid.UUID, library: Library) -> bytes:
    """Equal only for equal libraries, with all that they load."""
    digest = hashlib.sha256(version_id.bytes)
    named = [part for pair in sorted(library.requires.items()) for part in pair]
    for part in (library.chunk_name.encode(), library.source, *named):
        digest.update(len(part).to_bytes(4, "big") + part)
    return digest.digest()
