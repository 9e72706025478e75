import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Script


def resolve(root: None, info: GraphQLResolveInfo, id: str) -> bool:
    delete_script(find(info, Script, id))
    return True


field = graphene.Boolean(
    required=True,
    description="Stops a script and its hooks, at once. Its runs stay readable.",
    args={
        "id": graphene.ID(required=True, description="The script's id."),
    },
    resolver=resolve,
)
