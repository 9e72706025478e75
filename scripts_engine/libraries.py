"""The libraries that sources require: which version a name stands for, and which a version keeps.

Names are resolved when a source is saved, and the version is pinned to what they stand for then.
"""

import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.db import connections

from accounts.models import Organisation
from core.names import MAX_NAME_CHARACTERS, name_key
from core.plain_text import is_encodable
from scripts_engine.definition_quota import Octets
from scripts_engine.flows.source import SourceError
from scripts_engine.lua_requires import Requirement, find_requirements
from scripts_engine.models import RequiredLibrary, Script, ScriptVersion
from scripts_engine.sandbox import MAX_LIBRARIES, MAX_PROGRAM_BYTES, figure_in_words

_TOO_MANY = f"With the library {{}} there are more than {MAX_LIBRARIES} libraries."
# So many are looked up by name; beyond that, all scripts of the organisation are read.
_MAX_NAMES = 1000

Pins = dict[str, ScriptVersion]
"""What a source requires, by the names that it uses."""


class Unresolved(NamedTuple):
    """A source whose names are to be resolved."""

    required: Sequence[Requirement]
    """The first requirement of each name."""
    size: int
    """Bytes of the source."""
    script_name: str = "script"
    script_id: uuid.UUID | None = None
    """``None`` for a script that does not exist yet."""
    version_id: uuid.UUID | None = None
    """Of its version, where others of the same release may require it."""

    @classmethod
    def of(
        cls, source: str, script: Script | None = None, version_id: uuid.UUID | None = None
    ) -> "Unresolved":
        """Raises ``SourceError`` if the source requires too many libraries."""
        size = len(source.encode())
        if script is None:
            unresolved = cls([], size, version_id=version_id)
        else:
            unresolved = cls([], size, script.name, script.pk, version_id)
        return unresolved._replace(required=_distinct(unresolved, source))


def resolve(
    organisation: Organisation,
    source: str,
    *,
    script: Script | None = None,
    draft_of: str = "",
    among: Collection[ScriptVersion] = (),
) -> Pins:
    """The versions that the names in the source stand for: the live ones of the libraries.

    A version in ``among`` comes first, such as one of the same release, and a draft of the author
    ``draft_of`` stands for a library without a live version. Raises ``SourceError`` with library
    and line.
    """
    unresolved = [Unresolved.of(source, script)]
    scripts = _scripts_named(organisation, unresolved)
    [pins] = _all_pins(_Resolution(unresolved, scripts, among, draft_of))
    return pins


def resolve_together(
    organisation: Organisation,
    versions: Sequence[ScriptVersion],
    *,
    among: Collection[ScriptVersion] = (),
) -> list[Pins]:
    """Resolves versions that go live together, in their order; among one another first.

    ``among`` are others that go live with them, as they are. Each of ``versions`` has its
    ``script`` loaded. The number of statements does not depend on theirs. Raises ``SourceError``,
    whose message names the script.
    """
    unresolved = [Unresolved.of(version.source, version.script, version.pk) for version in versions]
    scripts = _scripts_named(organisation, unresolved)
    return _all_pins(_Resolution(unresolved, scripts, [*among, *versions]))


def resolve_planned(
    sources: Sequence[Unresolved], scripts: Mapping[str, Script]
) -> list[Pins | SourceError]:
    """Resolves sources that are not saved yet, in their order; each may have an error of its own.

    ``scripts`` are all that there will be, by the keys of their names, each with the live version
    that it will have.
    """
    return _Resolution(sources, scripts).results()


def _all_pins(resolution: "_Resolution") -> list[Pins]:
    pins = []
    for result in resolution.results():
        if isinstance(result, SourceError):
            raise result
        pins.append(result)
    return pins


class _Resolution:
    """The libraries that some sources name, read at once."""

    def __init__(
        self,
        sources: Sequence[Unresolved],
        scripts: Mapping[str, Script],
        among: Collection[ScriptVersion] = (),
        draft_of: str = "",
    ) -> None:
        self._sources, self._scripts = sources, scripts
        self._among = {version.script_id: version for version in among}
        self._drafts = self._drafts_of(draft_of) if draft_of else {}

    def results(self) -> list[Pins | SourceError]:
        """Of each source, in their order."""
        found = [self._pins(source) for source in self._sources]
        if any(found):
            graph = self._graph(found)
            for place, (source, pins) in enumerate(zip(self._sources, found, strict=True)):
                if not isinstance(pins, SourceError):
                    found[place] = _checked_closure(source, pins, graph)
        return found

    def _pins(self, source: Unresolved) -> Pins | SourceError:
        try:
            return {each.name: self._version(source, each) for each in source.required}
        except SourceError as error:
            return error

    def _drafts_of(self, author: str) -> dict[uuid.UUID, ScriptVersion]:
        without = [
            script.pk
            for script in self._scripts.values()
            if script.is_library and script.current_version is None
        ]
        if not without:
            return {}
        drafts = ScriptVersion.objects.filter(script__in=without, draft_of=author).defer("source")
        return {draft.script_id: draft for draft in drafts}

    def _version(self, source: Unresolved, required: Requirement) -> ScriptVersion:
        is_name = _is_name(required.name)
        library = self._scripts.get(name_key(required.name)) if is_name else None
        if library is None:
            raise _error(source, required, "There is no library {}.")
        if not library.is_library:
            raise _error(source, required, "{} is a script and not a library.")
        if not library.is_enabled:
            raise _error(source, required, "The library {} is disabled.")
        if library.pk == source.script_id:
            raise _error(source, required, "The library {} requires itself.")
        version = (
            self._among.get(library.pk) or library.current_version or self._drafts.get(library.pk)
        )
        if version is None:
            raise _error(source, required, "The library {} has not been published.")
        version.script = library
        return version

    def _graph(self, found: Sequence[Pins | SourceError]) -> "VersionGraph":
        own = {source.version_id for source in self._sources}
        all_pins = [{} if isinstance(pins, SourceError) else pins for pins in found]
        graph = VersionGraph({version.pk for pins in all_pins for version in pins.values()} - own)
        for source, pins in zip(self._sources, all_pins, strict=True):
            if source.version_id is not None and source.script_id is not None:
                graph.below[source.version_id] = {version.pk for version in pins.values()}
                graph.sizes[source.version_id] = source.size
                graph.script_of[source.version_id] = source.script_id
        return graph


def _checked_closure(source: Unresolved, pins: Pins, graph: "VersionGraph") -> Pins | SourceError:
    """The pins, or the error of a cycle, or of too many or too large libraries."""
    closure: set[uuid.UUID] = set()
    size = source.size
    for required in source.required:
        new = graph.closure_of(pins[required.name].pk) - closure
        closure |= new
        size += sum(graph.sizes[each] for each in new)
        if source.script_id in {graph.script_of[each] for each in new}:
            return _error(source, required, "The library {} requires this one: a cycle.")
        if len(closure) > MAX_LIBRARIES:
            return _error(source, required, _TOO_MANY)
        if size > MAX_PROGRAM_BYTES:
            limit = figure_in_words(MAX_PROGRAM_BYTES)
            text = f"With the library {{}} the sources have {size:,} bytes, over {limit}."
            return _error(source, required, text)
    return pins


class VersionGraph:
    """Versions with all that they require, also through others, read by two statements."""

    def __init__(self, roots: Collection[uuid.UUID]) -> None:
        self.below: dict[uuid.UUID, set[uuid.UUID]] = {}
        """By version, those that it requires itself."""
        for requirement in requirements_below(roots):
            below = self.below.setdefault(requirement.version_id, set())
            below.add(requirement.library_version_id)
        versions = {*roots, *(each for below in self.below.values() for each in below)}
        rows = ScriptVersion.objects.filter(pk__in=versions).values_list(
            "pk", "script_id", Octets("source")
        )
        self.sizes: dict[uuid.UUID, int] = {}
        self.script_of: dict[uuid.UUID, uuid.UUID] = {}
        for version_id, script_id, size in rows:
            self.sizes[version_id], self.script_of[version_id] = size, script_id

    def closure_of(self, version_id: uuid.UUID) -> set[uuid.UUID]:
        """The version and all that it requires."""
        found, ahead = {version_id}, [version_id]
        while ahead:
            new = self.below.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        return found


def _distinct(unresolved: Unresolved, source: str) -> list[Requirement]:
    """The first requirement of each name. Raises ``SourceError`` if there are too many."""
    first: dict[str, Requirement] = {}
    for requirement in find_requirements(source):
        first.setdefault(requirement.name, requirement)
        if len(first) > MAX_LIBRARIES:
            raise _error(unresolved, requirement, _TOO_MANY)
    return list(first.values())


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_NAME_CHARACTERS and "\0" not in text and is_encodable(text)


def _scripts_named(organisation: Organisation, sources: Sequence[Unresolved]) -> dict[str, Script]:
    names = {each.name for source in sources for each in source.required}
    keys = {name_key(name) for name in names if _is_name(name)}
    if not keys:
        return {}
    scripts = Script.objects.of_organisation(organisation)
    if len(keys) <= _MAX_NAMES:
        scripts = scripts.filter(name_key__in=keys)
    rows = scripts.select_related("current_version").defer("current_version__source")
    return {script.name_key: script for script in rows}


def _error(source: Unresolved, required: Requirement, text: str) -> SourceError:
    name = required.name[:MAX_NAME_CHARACTERS].replace("\0", "")
    message = text.format(f"“{name}”")
    return SourceError(f"{source.script_name}:{required.line}: {message}", required.line)


def pin(version: ScriptVersion, pins: Pins) -> None:
    """Keeps what the names of the version stand for, in place of what was kept before."""
    pin_all([(version, pins)])


def pin_all(pinned: Collection[tuple[ScriptVersion, Pins]]) -> None:
    """Pins several versions, by two statements."""
    ids = [version.pk for version, _ in pinned]
    RequiredLibrary.objects.filter(version__in=ids).delete()
    RequiredLibrary.objects.bulk_create(
        RequiredLibrary(version=version, name=name, library_version=library)
        for version, pins in pinned
        for name, library in pins.items()
    )


def has_pins(version: ScriptVersion, pins: Pins) -> bool:
    """Whether these are the pins that the version keeps."""
    return dict(version.requirements.values_list("name", "library_version")) == {
        name: library.pk for name, library in pins.items()
    }


def refuse_library(script: Script) -> None:
    """Raises ``ValidationError`` for a library, which nothing runs."""
    if script.is_library:
        message = "A library does not run by itself. Choose a script that requires it."
        raise ValidationError({"script": ValidationError(message, code="library")})


def requirements_below(versions: Collection[uuid.UUID]) -> list[RequiredLibrary]:
    """What the versions require, and what that requires in turn, by one statement."""
    if not versions:
        return []
    table = RequiredLibrary._meta.db_table
    version = RequiredLibrary._meta.get_field("version")
    manager = RequiredLibrary.objects
    connection = connections[manager.db]
    columns = "id, version_id, name, library_version_id"
    statement = f"""
        WITH RECURSIVE required ({columns}) AS (
            SELECT {columns} FROM {table}
            WHERE version_id IN ({", ".join(["%s"] * len(versions))})
            UNION
            SELECT below.id, below.version_id, below.name, below.library_version_id
            FROM {table} AS below
            JOIN required ON below.version_id = required.library_version_id
        )
        SELECT {columns} FROM required
    """  # noqa: S608 (only names of columns and placeholders)
    ids = [version.get_db_prep_value(each, connection) for each in versions]
    return list(manager.raw(statement, ids))
