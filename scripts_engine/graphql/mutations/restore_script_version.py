import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import restore_script_version
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import ScriptType
from scripts_engine.models import Script, ScriptVersion


def resolve(root: None, info: GraphQLResolveInfo, version: str) -> Script:
    row = find(info, ScriptVersion, version)
    with script_errors():
        return restore_script_version(row, author=Author(api_key=caller_key(info)))


field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Makes the source of an old version the newest one.",
    args={"version": graphene.ID(required=True, description="The version's id.")},
    resolver=resolve,
)
