"""GraphQL of manifests and plans."""

from collections.abc import Sequence
from typing import Any

import graphene
from graphql import GraphQLResolveInfo, ValueNode, value_from_ast_untyped

from accounts.graphql.scope import (
    caller_key,
    caller_maker,
    caller_organisation,
    scope_refusals,
    scoped,
)
from core.graphql.mutation import mutation
from core.graphql.resolving import caller_origin, id_of, one
from scripts_engine.graphql.mutations import script_errors
from scripts_engine.graphql.releases import ChangeType, ReleaseType
from scripts_engine.models import Plan, Release
from scripts_engine.plans.applying import Applied, apply_plan
from scripts_engine.plans.blobs import MAX_DIGESTS, keep_blobs, missing_blobs
from scripts_engine.plans.differences import ShownChange, shown_changes
from scripts_engine.plans.manifest import written_manifest
from scripts_engine.plans.planning import plan_manifest
from scripts_engine.runs.spec import Author


class JSON(graphene.Scalar):
    """Any JSON value: an object, a list, a text, a number, true, false or null."""

    @staticmethod
    def serialize(value: Any) -> Any:
        return value

    @staticmethod
    def parse_value(value: Any) -> Any:
        return value

    @staticmethod
    def parse_literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
        """The value of a literal in a document, whose depth and tokens are limited."""
        return value_from_ast_untyped(node, variables)


class PlanProblemType(graphene.ObjectType):
    """A mistake in a manifest."""

    class Meta:
        name = "PlanProblem"

    path = graphene.String(
        required=True,
        description="Where, such as `scripts[3].timeoutSeconds`; empty for the whole manifest.",
    )
    code = graphene.String(required=True, description="What kind of mistake, such as `duplicate`.")
    message = graphene.String(required=True, description="What is wrong, for people.")


class PlanType(graphene.ObjectType):
    """What a manifest would change. It lives for an hour, and is applied once."""

    class Meta:
        name = "Plan"

    id = graphene.ID(required=True, description="The plan's id.")
    changes = graphene.List(
        graphene.NonNull(ChangeType),
        required=True,
        description="What it would change; empty if there are problems. A `diff` is null where the "
        "object has changed since.",
    )
    problems = graphene.List(
        graphene.NonNull(PlanProblemType),
        required=True,
        description="What is wrong with the manifest; a plan with problems cannot be applied.",
    )
    secrets_missing = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="Names of secrets that the new sources read by a literal and the organisation "
        "does not have. It names no secret that no source of the manifest names.",
    )
    expires_at = graphene.DateTime(required=True, description="The end of its hour.")

    @staticmethod
    def resolve_id(plan: Plan, info: GraphQLResolveInfo) -> str:
        return str(plan.pk)

    @staticmethod
    def resolve_changes(plan: Plan, info: GraphQLResolveInfo) -> list[ShownChange]:
        return shown_changes(plan)


class AppliedPlanType(graphene.ObjectType):
    """What came of a plan."""

    class Meta:
        name = "AppliedPlan"

    release = graphene.Field(
        ReleaseType, description="Null if nothing changed, or only drafts were saved."
    )

    @staticmethod
    def resolve_release(applied: Applied, info: GraphQLResolveInfo) -> Release | None:
        return applied.release


class PlansQuery(graphene.ObjectType):
    manifest = graphene.Field(
        graphene.NonNull(JSON),
        description="The live scripts, libraries, hooks and schedules by name, with sources by "
        "SHA-256. It holds no token and no secret.",
    )
    missing_blobs = graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description="Those of the digests whose sources the organisation does not have. Upload "
        "them with `keepBlobs` or `PUT /admin/blobs/<sha256>`.",
        digests=graphene.List(
            graphene.NonNull(graphene.String),
            required=True,
            description=f"SHA-256 in lower-case hex, at most {MAX_DIGESTS:,}.",
        ),
    )
    plan = graphene.Field(
        PlanType,
        description="A plan of the last hour.",
        id=graphene.ID(required=True, description="The plan's id."),
    )

    @staticmethod
    def resolve_manifest(root: None, info: GraphQLResolveInfo) -> dict[str, Any]:
        return written_manifest(caller_organisation(info))

    @staticmethod
    def resolve_missing_blobs(
        root: None, info: GraphQLResolveInfo, digests: Sequence[str]
    ) -> list[str]:
        with script_errors():
            return missing_blobs(caller_organisation(info), digests)

    @staticmethod
    def resolve_plan(root: None, info: GraphQLResolveInfo, id: str) -> Plan:
        plan: Plan = one(scoped(info, Plan).unexpired(), id)
        return plan


@mutation(
    graphene.List(graphene.NonNull(graphene.String)),
    "Keeps sources for plans, all or none, and returns the SHA-256 of each. Those that no plan "
    "uses go after an hour.",
    errors=script_errors,
    sources=graphene.List(
        graphene.NonNull(graphene.String),
        required=True,
        description=f"At most {MAX_DIGESTS:,}, each at most 64 KiB; a request takes 1 MiB.",
    ),
)
def keep_blobs_field(info: GraphQLResolveInfo, sources: Sequence[str]) -> list[str]:
    return keep_blobs(caller_organisation(info), sources)


@mutation(
    PlanType,
    "Says what a manifest would change and what is wrong with it; changes nothing. The "
    "sixth plan of the caller that waits ends the caller's oldest.",
    errors=script_errors,
    manifest=JSON(required=True, description="At most 512 KiB and 1,000 items."),
    prune=graphene.Boolean(
        default_value=False, description="Whether to delete what the manifest does not name."
    ),
)
def plan_manifest_field(
    info: GraphQLResolveInfo, manifest: Any, prune: bool | None = False
) -> Plan:
    # A slot of the sandbox limits the check of the sources instead.
    with info.context.place_left_to_others():
        return plan_manifest(
            caller_organisation(info),
            manifest,
            author=Author(api_key=caller_key(info)),
            prune=bool(prune),
        )


@mutation(
    AppliedPlanType,
    "Does exactly what the plan says, as one release, or nothing. `CONFLICT` names "
    "what has changed since. Each change needs its own scope: `Publish` for scripts, `WriteDrafts` "
    "for new sources, `WriteHooks` for hooks and schedules.",
    errors=script_errors,
    id=graphene.ID(required=True, description="The plan's id."),
    note=graphene.String(
        default_value="", description="What the release is for, at most 500 characters."
    ),
    publish=graphene.Boolean(
        default_value=True,
        description="False saves the sources as the caller's drafts, if nothing else changes.",
    ),
)
def apply_plan_field(
    info: GraphQLResolveInfo,
    id: str,
    note: str | None = "",
    publish: bool | None = True,
) -> Applied:
    held = caller_maker(info).scopes
    with scope_refusals(info):
        return apply_plan(
            caller_organisation(info),
            id_of(Plan, id),
            held=held,
            author=Author(api_key=caller_key(info)),
            origin=caller_origin(info),
            note=note or "",
            publish=publish is not False,
        )
