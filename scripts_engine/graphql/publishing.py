"""GraphQL mutations of drafts and releases."""

from collections.abc import Sequence

import graphene
from django.core.exceptions import ValidationError
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import (
    caller_key,
    caller_maker,
    caller_organisation,
    find,
    require_scopes,
    scope_refusals,
    scoped,
)
from accounts.graphql.shared import expected_revision
from accounts.scopes import Scope
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import caller_origin, id_of
from scripts_engine.flows.drafts import (
    MAX_PUBLISHED,
    delete_draft,
    draft_by,
    publish,
    save_draft,
)
from scripts_engine.flows.update_dependents import update_dependents
from scripts_engine.graphql.mutations import script_errors
from scripts_engine.graphql.releases import ReleaseType
from scripts_engine.graphql.types import ScriptVersionType
from scripts_engine.models import Release, Script, ScriptVersion
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import Author, draft_owner


@mutation(
    ScriptVersionType,
    "Saves a source as the caller's draft of a script, in place of its earlier one. A "
    "source that does not compile is refused, with the line.",
    errors=script_errors,
    script=graphene.ID(required=True, description="The script's id."),
    source=graphene.String(required=True, description="Lua 5.4; at most 64 KiB."),
    expected_revision=expected_revision(),
)
def save_draft_field(
    info: GraphQLResolveInfo,
    script: str,
    source: str,
    expected_revision: int | None = None,
) -> ScriptVersion:
    row = find(info, Script, script)
    author = Author(api_key=caller_key(info))
    return save_draft(row, source, author=author, expected_revision=expected_revision)


@mutation(
    graphene.Boolean,
    "Deletes a draft. One that has run stays readable from its runs. Another author's "
    "needs `Publish` as well.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The draft's id."),
)
def delete_draft_field(info: GraphQLResolveInfo, id: str) -> bool:
    draft = find(info, ScriptVersion, id)
    if draft.draft_of != draft_owner(Author(api_key=caller_key(info))):
        require_scopes(info, Scope.PUBLISH)
    delete_draft(draft)
    return True


def _versions(info: GraphQLResolveInfo, ids: Sequence[str]) -> list[ScriptVersion]:
    """The versions of these ids, each once. Raises NOT_FOUND if one is unknown."""
    if len(ids) > MAX_PUBLISHED:
        raise ValidationError({"versions": f"Choose 1 to {MAX_PUBLISHED} versions."})
    keys = {id_of(ScriptVersion, each) for each in ids}
    rows = list(scoped(info, ScriptVersion).filter(pk__in=keys).defer("source"))
    if len(rows) < len(keys):
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such object.")
    return rows


@mutation(
    ReleaseType,
    "Makes drafts and past versions the live ones of their scripts, as one release. `CONFLICT` "
    "if another version went live since a draft was begun; `saveDraft` with the present "
    "`expectedRevision` bases it on that one.",
    errors=script_errors,
    versions=graphene.List(
        graphene.NonNull(graphene.ID),
        required=True,
        description=f"Ids of versions, one for each script, at most {MAX_PUBLISHED}.",
    ),
    note=graphene.String(
        default_value="", description="What the release is for, at most 500 characters."
    ),
)
def publish_field(
    info: GraphQLResolveInfo, versions: Sequence[str], note: str | None = ""
) -> Release:
    return publish(
        caller_organisation(info),
        _versions(info, versions),
        note=note or "",
        origin=caller_origin(info),
    )


@mutation(
    ReleaseType,
    "Publishes the caller's draft of a library, if there is one, and new versions of "
    "all scripts that load another version of the library than this one or the live one. Their "
    "sources are the live ones, and drafts stay as they are.",
    errors=script_errors,
    library=graphene.ID(required=True, description="The library's id."),
    note=graphene.String(
        default_value="", description="What the release is for, at most 500 characters."
    ),
)
def update_dependents_field(
    info: GraphQLResolveInfo, library: str, note: str | None = ""
) -> Release:
    script = find(info, Script, library)
    author = Author(api_key=caller_key(info))
    version = draft_by(script, author) or script.current_version
    if version is None:
        message = "The library has no version."
        raise GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field="library")
    version.script = script
    return update_dependents(version, author=author, note=note or "", origin=caller_origin(info))


@mutation(
    ReleaseType,
    "Puts back what a release replaced, as a new release, all or nothing. `CONFLICT` "
    "names what has changed since. Each object needs its own scope: `Publish` for scripts, "
    "`WriteHooks` for hooks and schedules.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The release's id."),
    force=graphene.Boolean(
        default_value=False, description="Whether to discard what has changed since."
    ),
)
def undo_release_field(info: GraphQLResolveInfo, id: str, force: bool | None = False) -> Release:
    release = find(info, Release, id)
    held = caller_maker(info).scopes
    with scope_refusals(info):
        return undo_release(release, held=held, force=bool(force), origin=caller_origin(info))
