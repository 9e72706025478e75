import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import update_script
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import ScriptType
from scripts_engine.models import Script


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    source: str | None = None,
    timeout_seconds: float | None = None,
    enabled: bool | None = None,
) -> Script:
    given = {"name": name, "timeout_seconds": timeout_seconds, "is_enabled": enabled}
    changes = {field: value for field, value in given.items() if value is not None}
    script = find(info, Script, id)
    with script_errors():
        return update_script(
            script, author=Author(api_key=caller_key(info)), source=source, **changes
        )


field = graphene.Field(
    graphene.NonNull(ScriptType),
    description="Changes what is given of a script, all or nothing. A new source: a new version.",
    args={
        "id": graphene.ID(required=True, description="The script's id."),
        "name": graphene.String(description="What to call it."),
        "source": graphene.String(description="Lua 5.4; at most 64 KiB."),
        "timeout_seconds": graphene.Float(description="When a run is stopped; at most 25."),
        "enabled": graphene.Boolean(description="Whether its hooks run it."),
    },
    resolver=resolve,
)
