import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from scripts_engine.flows.issue_hook import rotate_call_token
from scripts_engine.graphql.issued_hook import as_issued_hook
from scripts_engine.graphql.types import IssuedHook
from scripts_engine.models import Hook


def resolve(root: None, info: GraphQLResolveInfo, hook: str) -> IssuedHook:
    return as_issued_hook(rotate_call_token(find(info, Hook, hook)))


field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Gives a hook a new call token; the old one is refused from now on.",
    args={
        "hook": graphene.ID(required=True, description="The HookID."),
    },
    resolver=resolve,
)
