import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from core.http.origin import origin_of
from scripts_engine.flows.hooks import rotate_call_token
from scripts_engine.graphql.mutations.issued_hook import as_issued_hook
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import IssuedHook
from scripts_engine.models import Hook


def resolve(
    root: None, info: GraphQLResolveInfo, hook: str, overlap_seconds: int | None = 0
) -> IssuedHook:
    row = find(info, Hook, hook)
    with script_errors():
        issued = rotate_call_token(
            row,
            overlap_seconds=overlap_seconds or 0,
            origin=origin_of(info.context.request),
        )
    return as_issued_hook(issued)


field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Gives a hook a new call token, which is in this answer only.",
    args={
        "hook": graphene.ID(required=True, description="The HookID."),
        "overlap_seconds": graphene.Int(
            default_value=0, description="How long the old token stays good: 0 to 604800."
        ),
    },
    resolver=resolve,
)
