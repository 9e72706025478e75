import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from scripts_engine.flows.hooks import delete_hook
from scripts_engine.models import Hook


def resolve(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    delete_hook(find(info, Hook, id))
    return True


field = graphene.Boolean(
    required=True,
    description="Stops a hook, at once. Its runs stay readable.",
    args={
        "id": graphene.ID(required=True, description="The HookID."),
    },
    resolver=resolve,
)
