"""Checks the sources of a plan's new versions, and finds what they require and read."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from django.core.exceptions import ValidationError

from accounts.models import Organisation
from core.names import name_key
from scripts_engine.flows.source import SourceError, check_source
from scripts_engine.libraries import Unresolved, resolve_planned
from scripts_engine.lua_requires import find_secrets
from scripts_engine.models import Script, ScriptVersion, Secret
from scripts_engine.plans.blobs import sources_of
from scripts_engine.plans.manifest import Problems
from scripts_engine.releases.items import ProblemCode
from scripts_engine.releases.kinds import State

# Sources that are in memory together.
_BATCH = 100


class NewSource(NamedTuple):
    """The source of a version that a plan would make."""

    path: str
    """Of the source in the manifest."""
    digest: str
    script_id: str
    version_id: str


class CheckedSources(NamedTuple):
    libraries: Mapping[str, Mapping[str, str]]
    """Versions of libraries by the names by which a source requires them, by version."""
    secrets_missing: Sequence[str]
    """Names that the sources read and the organisation does not have, in alphabetical order."""


def check_sources(
    organisation: Organisation,
    sources: Sequence[NewSource],
    scripts: Mapping[str, State],
    problems: Problems,
) -> CheckedSources:
    """Adds a problem for each source that does not compile, or whose libraries do not resolve.

    ``scripts`` are the states of all that there will be, by id.
    """
    rows = {script_id: _script(script_id, state) for script_id, state in scripts.items()}
    # Those that do not compile require nothing, as far as others that require them are concerned.
    unresolved = {each: _requiring_nothing(each, rows[each.script_id]) for each in sources}
    read: set[str] = set()
    for each, source in _texts(organisation, sources):
        script, version_id = rows[each.script_id], uuid.UUID(each.version_id)
        try:
            check_source(organisation, source, script.name)
            unresolved[each] = Unresolved.of(source, script, version_id)
        except SourceError as error:
            problems.add(each.path, ProblemCode.DOES_NOT_COMPILE, error.message)
        else:
            read |= find_secrets(source)
    named = {name_key(script.name): script for script in rows.values()}
    libraries: dict[str, dict[str, str]] = {}
    results = resolve_planned(list(unresolved.values()), named)
    for each, pins in zip(unresolved, results, strict=True):
        if isinstance(pins, SourceError):
            problems.add(each.path, ProblemCode.UNRESOLVED_LIBRARY, pins.message)
        elif pins:
            libraries[each.version_id] = {name: str(pin.pk) for name, pin in pins.items()}
    return CheckedSources(libraries, _missing(organisation, read))


def _requiring_nothing(source: NewSource, script: Script) -> Unresolved:
    return Unresolved([], 0, script.name, script.pk, uuid.UUID(source.version_id))


def _script(script_id: str, state: State) -> Script:
    """A script that is not saved, as resolving libraries needs it."""
    script = Script(
        id=uuid.UUID(script_id),
        name=state["name"],
        is_library=state["library"],
        is_enabled=state["enabled"],
    )
    if (version := state["version"]) is not None:
        script.current_version = ScriptVersion(id=uuid.UUID(version), script=script)
    return script


def _texts(
    organisation: Organisation, sources: Sequence[NewSource]
) -> Iterator[tuple[NewSource, str]]:
    for start in range(0, len(sources), _BATCH):
        batch = sources[start : start + _BATCH]
        found = sources_of(organisation, {each.digest for each in batch})
        # One that went meanwhile is missed when the plan is applied.
        yield from ((each, found[each.digest]) for each in batch if each.digest in found)


def _missing(organisation: Organisation, names: set[str]) -> list[str]:
    named = Secret._meta.get_field("name")
    possible = set()
    for name in names:
        # No secret has another name.
        with suppress(ValidationError):
            named.run_validators(name)
            possible.add(name)
    known = Secret.objects.of_organisation(organisation).filter(name__in=possible)
    return sorted(possible - set(known.values_list("name", flat=True)))
