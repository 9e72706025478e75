"""GraphQL of releases and drafts: what went live together, when, and by whom."""

from collections.abc import Sequence
from datetime import datetime

import graphene
from django.core.exceptions import ValidationError
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import (
    caller_key,
    caller_maker,
    caller_organisation,
    find,
    find_even_deleted,
    require_scopes,
    scope_refusals,
    scoped,
)
from accounts.graphql.shared import expected_revision
from accounts.scopes import Scope
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_utc, caller_origin, id_of
from scripts_engine.flows.drafts import (
    MAX_PUBLISHED,
    delete_draft,
    draft_by,
    publish,
    save_draft,
)
from scripts_engine.flows.update_dependents import update_dependents
from scripts_engine.graphql.mutations import script_errors
from scripts_engine.graphql.types import ScriptVersionType
from scripts_engine.models import Release, ReleaseChange, Script, ScriptVersion
from scripts_engine.plans.differences import ShownChange
from scripts_engine.releases.kinds import kind_named
from scripts_engine.releases.undo import undo_release
from scripts_engine.runs.spec import Author, draft_owner


class ChangeType(graphene.ObjectType):
    """A change of one object.

    Resolved from changes of releases and of plans.
    """

    class Meta:
        name = "Change"
        description = "A change of one object."

    kind = graphene.String(required=True, description="Script, Hook or Schedule.")
    name = graphene.String(required=True, description="The object's name afterwards.")
    action = graphene.String(required=True, description="Create, Update, Rename, Delete or None.")
    diff = graphene.String(
        description="What changed, for people: lines of words, and a unified diff of a source."
    )

    @staticmethod
    def resolve_diff(change: ReleaseChange | ShownChange, info: GraphQLResolveInfo) -> str | None:
        if isinstance(change, ShownChange):
            return change.difference
        kind = kind_named(change.kind)
        return kind.difference(caller_organisation(info), change.before, change.after) or None


class ReleaseType(DjangoObjectType):
    """What went live together: one change or many, all or nothing."""

    class Meta:
        name = "Release"
        model = Release
        skip_registry = True
        fields = ("number",)

    id = graphene.ID(required=True, description="The release's id.")
    at = graphene.DateTime(required=True, description="When it went live.")
    note = graphene.String(required=True, description="What it is for, if its author said so.")
    by = graphene.String(
        required=True,
        description="The e-mail of the person or the name of the key, as the organisation may "
        "know it.",
    )
    undoes = graphene.Field(lambda: ReleaseType, description="The release that this one undoes.")
    changes = graphene.List(
        graphene.NonNull(ChangeType), required=True, description="What it changed, at most 1,000."
    )

    @staticmethod
    def resolve_by(release: Release, info: GraphQLResolveInfo) -> str:
        return release.actor_label

    @staticmethod
    def resolve_undoes(release: Release, info: GraphQLResolveInfo) -> Release | None:
        return release.undoes

    @staticmethod
    def resolve_changes(release: Release, info: GraphQLResolveInfo) -> list[ReleaseChange]:
        return list(release.changes.order_by("place"))


ReleaseConnection = connection_of(ReleaseType)


class ReleasesQuery(graphene.ObjectType):
    release = graphene.Field(
        ReleaseType,
        description="One release.",
        id=graphene.ID(required=True, description="The release's id."),
    )
    releases = connection_field(
        ReleaseConnection,
        "The releases of the organisation.",
        script=graphene.ID(
            description="Only those that changed this script, or a hook or schedule of it. It may "
            "be deleted."
        ),
        since=graphene.DateTime(description="Only releases at this time or later."),
        until=graphene.DateTime(description="Only releases before this time."),
    )

    @staticmethod
    def resolve_release(root: None, info: GraphQLResolveInfo, id: str) -> Release:
        return find(info, Release, id)

    @staticmethod
    def resolve_releases(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        script: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page:
        rows = scoped(info, Release).select_related("undoes")
        if script is not None:
            rows = rows.changing_script(find_even_deleted(info, Script, script).pk)
        if since is not None:
            rows = rows.filter(at__gte=as_utc(since, "since"))
        if until is not None:
            rows = rows.filter(at__lt=as_utc(until, "until"))
        return page_of(info, rows, first, after)


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
    name=graphene.String(
        description="A name for the object whose own name another one has taken meanwhile."
    ),
)
def undo_release_field(
    info: GraphQLResolveInfo, id: str, force: bool | None = False, name: str | None = None
) -> Release:
    release = find(info, Release, id)
    held = caller_maker(info).scopes
    with scope_refusals(info):
        return undo_release(
            release, held=held, force=bool(force), name=name or "", origin=caller_origin(info)
        )
