"""The versions that a plan makes: saved in bulk, as what goes live next or as drafts."""

import uuid
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from accounts.models import Organisation
from core.errors import ConflictError
from scripts_engine.definition_quota import ROW_BYTES, Octets, count_growth, uncount_definitions
from scripts_engine.models import RequiredLibrary, Script, ScriptVersion
from scripts_engine.plans.blobs import forget_saved_blobs, sources_of
from scripts_engine.runs.spec import Author, draft_owner

# Sources that are in memory together.
_BATCH = 100


class PlannedVersion(NamedTuple):
    id: uuid.UUID
    script_id: uuid.UUID
    script_name: str
    digest: str
    libraries: Mapping[str, str]
    """Versions of libraries by the names by which the source requires them."""

    @property
    def key(self) -> tuple[uuid.UUID, str]:
        return self.script_id, self.digest

    def with_libraries(self, others: Mapping[str, str]) -> "PlannedVersion":
        """The same with others in place of some versions of libraries."""
        libraries = {name: others.get(version, version) for name, version in self.libraries.items()}
        return self._replace(libraries=libraries)


def save_planned_versions(
    organisation: Organisation, versions: Sequence[PlannedVersion], author: Author
) -> None:
    """Adds versions that are about to go live; their scripts may be created later.

    The author's drafts with the same sources end. Call it in a release, with the scripts locked.
    Raises ``ConflictError`` if a source is gone, or ``LimitExceededError``.
    """
    wanted = {version.key for version in versions}
    ended = [draft.pk for draft in _drafts(versions, author) if _key(draft) in wanted]
    _save(organisation, versions, author)
    _end_drafts(organisation, ended)


def save_planned_drafts(
    organisation: Organisation, versions: Sequence[PlannedVersion], author: Author
) -> None:
    """Saves the versions as the author's drafts, in place of others. Otherwise the same."""
    drafts = list(_drafts(versions, author))
    wanted = {version.key for version in versions}
    kept = {_key(draft): draft.pk for draft in drafts if _key(draft) in wanted}
    ended = [draft.pk for draft in drafts if _key(draft) not in kept]
    in_place = {str(each.id): str(kept[each.key]) for each in versions if each.key in kept}
    new = [each.with_libraries(in_place) for each in versions if each.key not in kept]
    # A script has one draft of an author. It goes later: another version may have its source.
    ScriptVersion.objects.filter(pk__in=ended).update(draft_of="")
    _save(organisation, new, author, are_drafts=True)
    _end_drafts(organisation, ended)


def _drafts(versions: Sequence[PlannedVersion], author: Author) -> "QuerySet[ScriptVersion]":
    scripts = [version.script_id for version in versions]
    drafts = ScriptVersion.objects.filter(script__in=scripts, draft_of=draft_owner(author))
    return drafts.order_by().defer("source")


def _key(version: ScriptVersion) -> tuple[uuid.UUID, str]:
    return version.script_id, version.source_digest


def _end_drafts(organisation: Organisation, ids: Sequence[uuid.UUID]) -> None:
    """Deletes drafts; those that runs or other versions name are nobody's from now on."""
    if not ids:
        return
    rows = ScriptVersion.objects.filter(pk__in=ids)
    required = RequiredLibrary.objects.filter(library_version=OuterRef("pk"))
    unnamed = rows.filter(~Exists(required), has_run=False)
    sizes = dict(unnamed.values_list("pk", Octets("source")))
    rows.exclude(pk__in=sizes).update(draft_of="")
    ScriptVersion.objects.filter(pk__in=sizes).delete()
    uncount_definitions(organisation.pk, sum(size + ROW_BYTES for size in sizes.values()))


def _save(
    organisation: Organisation,
    versions: Sequence[PlannedVersion],
    author: Author,
    *,
    are_drafts: bool = False,
) -> None:
    scripts = [version.script_id for version in versions]
    of_scripts = ScriptVersion.objects.filter(script__in=scripts).order_by()
    numbers = dict(of_scripts.values_list("script").annotate(Max("number")))
    live = dict(Script.objects.filter(pk__in=scripts).values_list("pk", "current_version"))
    for start in range(0, len(versions), _BATCH):
        batch = versions[start : start + _BATCH]
        sources = sources_of(organisation, {version.digest for version in batch})
        for version in batch:
            if version.digest not in sources:
                message = f"The source of “{version.script_name}” is not kept any more."
                raise ConflictError(f"{message} Upload it, and make another plan.")
        rows = [
            ScriptVersion(
                id=version.id,
                script_id=version.script_id,
                number=numbers.get(version.script_id, 0) + 1,
                source=sources[version.digest],
                source_digest=version.digest,
                draft_of=draft_owner(author) if are_drafts else "",
                base_id=live.get(version.script_id) if are_drafts else None,
                created_by=author.user,
                created_with=author.api_key,
                created_at=timezone.now(),
            )
            for version in batch
        ]
        count_growth(organisation, sum(ROW_BYTES + len(row.source.encode()) for row in rows))
        ScriptVersion.objects.bulk_create(rows)
    RequiredLibrary.objects.bulk_create(
        RequiredLibrary(version_id=version.id, name=name, library_version_id=uuid.UUID(library))
        for version in versions
        for name, library in version.libraries.items()
    )
    forget_saved_blobs(organisation, {version.digest for version in versions})
