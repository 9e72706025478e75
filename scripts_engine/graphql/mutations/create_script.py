import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, caller_organisation
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import create_script
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import ScriptType
from scripts_engine.models import Script


def resolve(root: None, info: GraphQLResolveInfo, name: str, source: str) -> Script:
    author = Author(api_key=caller_key(info))
    with script_errors():
        return create_script(caller_organisation(info), name=name, source=source, author=author)


field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Makes a script. A source that does not compile is refused, with its line.",
    args={
        "name": graphene.String(required=True, description="What to call it."),
        "source": graphene.String(required=True, description="Lua 5.4; at most 64 KiB."),
    },
    resolver=resolve,
)
