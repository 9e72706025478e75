"""Brings scripts to the newest version of a library that they require."""

import uuid
from collections.abc import Sequence

from django.core.exceptions import ValidationError

from accounts.models import Organisation
from core.errors import NotFoundError
from core.http.origin import NOWHERE, Origin
from scripts_engine.flows.drafts import MAX_PUBLISHED
from scripts_engine.flows.scripts import existing_script
from scripts_engine.libraries import VersionGraph
from scripts_engine.models import Release, RequiredLibrary, Script, ScriptVersion
from scripts_engine.releases.recording import releasing
from scripts_engine.releases.script_changes import change_scripts, state_of
from scripts_engine.releases.script_kind import SCRIPTS
from scripts_engine.releases.versions import add_version, pin_together
from scripts_engine.runs.spec import Author


def update_dependents(
    library_version: ScriptVersion, *, author: Author, note: str = "", origin: Origin = NOWHERE
) -> Release:
    """Publishes a library's version, with new versions of all scripts that have another one.

    Also of those that have it through other libraries. Their sources are the live ones; drafts stay
    as they are. Raises ``ConflictError`` for a draft that is not based on what is live,
    ``ValidationError`` by field, ``SourceError``, ``LimitExceededError`` or ``NotFoundError``.
    """
    organisation_id = library_version.script.organisation_id
    with releasing(organisation_id, origin, note=note) as changes:
        changes.watch(SCRIPTS, [library_version.script_id])
        library = existing_script(library_version.script_id)
        if not library.is_library:
            raise _invalid("Choose a library.")
        chosen = _locked(library_version.pk)
        if chosen.published_at is None:
            chosen.check_based_on_live()
        dependents = outdated_dependents(changes.organisation, chosen)
        if len(dependents) >= MAX_PUBLISHED:
            raise _invalid(f"More than {MAX_PUBLISHED - 1} scripts would change.")
        changes.watch(SCRIPTS, [script.pk for script in dependents])
        new = [_renewed(changes.organisation, script, author) for script in dependents]
        past = [] if chosen.published_at is None else [chosen]
        drafts = [chosen] if chosen.published_at is None else []
        live = [*past, *pin_together(changes.organisation, [*drafts, *new], among=past)]
        states = {
            script.pk: state_of(script) | {"version": str(version.pk)}
            for script, version in zip([library, *dependents], live, strict=True)
        }
        change_scripts(changes.organisation, states, origin=origin)
    if changes.release is None:
        raise _invalid("All scripts that require the library have this version.")
    return changes.release


def outdated_dependents(organisation: Organisation, chosen: ScriptVersion) -> Sequence[Script]:
    """The scripts whose live version loads another version of the library, by name.

    What only a disabled library loads does not count, since no new version can require that.
    """
    scripts = Script.objects.of_organisation(organisation)
    requiring = RequiredLibrary.objects.filter(version__in=scripts.values("current_version"))
    live = set(requiring.values_list("version", flat=True))
    graph = VersionGraph(live)
    disabled = set(scripts.filter(is_library=True, is_enabled=False).values_list("pk", flat=True))
    for version_id, below in graph.below.items():
        if graph.script_of[version_id] in disabled:
            below.clear()
    others = {
        version_id
        for version_id, script_id in graph.script_of.items()
        if script_id == chosen.script_id and version_id != chosen.pk
    }
    outdated = [version_id for version_id in live if graph.closure_of(version_id) & others]
    found = scripts.filter(current_version__in=outdated).exclude(pk=chosen.script_id)
    return list(found.select_related("current_version").order_by("name_key"))


def _locked(version_id: uuid.UUID) -> ScriptVersion:
    rows = ScriptVersion.objects.select_for_update(of=("self",)).select_related("script")
    version = rows.filter(pk=version_id).first()
    if version is None:
        raise NotFoundError("There is no such version.")
    return version


def _renewed(organisation: Organisation, script: Script, author: Author) -> ScriptVersion:
    """A new version with the live source of the script."""
    live_id = script.current_version_id
    version = add_version(organisation, script.pk, script.source, author, base_id=live_id)
    version.script = script
    return version


def _invalid(message: str) -> ValidationError:
    return ValidationError({"library": ValidationError(message, code="invalid")})
