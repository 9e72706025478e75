import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation
from core.http.origin import origin_of
from scripts_engine.flows.secrets import delete_secret
from scripts_engine.graphql.script_errors import script_errors


def resolve(root: None, info: GraphQLResolveInfo, name: str) -> bool:
    with script_errors():
        delete_secret(caller_organisation(info), name, origin=origin_of(info.context.request))
    return True


field = graphene.Boolean(
    required=True,
    description="Deletes a secret. Scripts that ask for it get nil.",
    args={"name": graphene.String(required=True, description="What scripts call it.")},
    resolver=resolve,
)
