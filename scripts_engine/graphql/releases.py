"""GraphQL of releases: what went live together, when, and by whom."""

from datetime import datetime

import graphene
from graphene_django import DjangoObjectType
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation, find, find_even_deleted, scoped
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.resolving import as_utc
from scripts_engine.models import Release, ReleaseChange, Script
from scripts_engine.plans.differences import ShownChange
from scripts_engine.releases.kinds import kind_named


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
