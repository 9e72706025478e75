"""Promotes scripts from one organisation to another, such as from staging to production."""

import uuid
from collections.abc import Collection

from django.core.exceptions import ValidationError

from accounts.holders import scopes_of_person
from accounts.models import Organisation, User
from accounts.scopes import Scope, require
from core.errors import NotFoundError
from core.names import name_key
from scripts_engine.models import Plan, RequiredLibrary, Script
from scripts_engine.plans.blobs import keep_sources, missing_blobs, sources_of
from scripts_engine.plans.manifest import written_manifest
from scripts_engine.plans.planning import plan_manifest
from scripts_engine.runs.spec import Author

# What an author of an organisation has, as far as plans go.
NEEDED = (Scope.READ_SCRIPTS, Scope.WRITE_DRAFTS, Scope.PUBLISH, Scope.WRITE_HOOKS)
# What each organisation decides by itself. Objects of the target keep theirs.
_OWN = frozenset({"enabled", "pinned"})
# Sources that are in memory together.
_BATCH = 100


def plan_promotion(
    source: Organisation,
    target: Organisation,
    *,
    user: User,
    names: Collection[str] | None = None,
) -> Plan:
    """Keeps a plan in the target: live scripts of the source with their hooks and schedules.

    ``names`` are those of the scripts, ``None`` for all; the libraries that they require come with
    them, as they are live. Nothing is deleted, and what is new starts disabled. Copies sources.
    Raises ``NotFoundError`` for an organisation that the user may not read, ``MissingScopeError``
    for one whose author the user is not, ``ValidationError`` by field, or ``LimitExceededError``.
    """
    held = [scopes_of_person(user, organisation) for organisation in (source, target)]
    if not all(held):
        raise NotFoundError("There is no such organisation.")
    for scopes in held:
        require(scopes, NEEDED)
    if source.pk == target.pk:
        raise _invalid("target", "Choose another organisation.")
    chosen = None if names is None else _with_libraries(source, _scripts_named(source, names))
    document = written_manifest(source, script_ids=chosen, without=_OWN)
    _copy_sources(source, target, {script["source"] for script in document["scripts"]})
    return plan_manifest(target, document, author=Author(user=user), kept=_OWN)


def _scripts_named(organisation: Organisation, names: Collection[str]) -> set[uuid.UUID]:
    keys = {name_key(name) for name in names}
    scripts = Script.objects.of_organisation(organisation)
    found = scripts.filter(name_key__in=keys, current_version__isnull=False)
    ids = set(found.values_list("pk", flat=True))
    if len(ids) < len(keys):
        raise _invalid("names", "Choose live scripts of the organisation.")
    return ids


def _with_libraries(organisation: Organisation, script_ids: set[uuid.UUID]) -> set[uuid.UUID]:
    """The scripts, and what their live versions require, directly or through others."""
    found, ahead = set(script_ids), set(script_ids)
    scripts = Script.objects.of_organisation(organisation)
    while ahead:
        live = scripts.filter(pk__in=ahead).order_by().values("current_version")
        required = RequiredLibrary.objects.filter(version__in=live)
        ahead = set(required.values_list("library_version__script", flat=True)) - found
        found |= ahead
    return found


def _copy_sources(source: Organisation, target: Organisation, digests: Collection[str]) -> None:
    wanted = sorted(digests)
    for start in range(0, len(wanted), _BATCH):
        missing = missing_blobs(target, wanted[start : start + _BATCH])
        if missing:
            keep_sources(target, sources_of(source, missing))


def _invalid(field: str, message: str) -> ValidationError:
    return ValidationError({field: ValidationError(message, code="invalid")})
