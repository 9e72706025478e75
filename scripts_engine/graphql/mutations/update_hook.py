import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from scripts_engine.flows.hooks import update_hook
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import HookType
from scripts_engine.models import Hook


def resolve(
    root: None,
    info: GraphQLResolveInfo,
    id: str,
    name: str | None = None,
    enabled: bool | None = None,
) -> Hook:
    given = {"name": name, "is_enabled": enabled}
    changes = {field: value for field, value in given.items() if value is not None}
    hook = find(info, Hook, id)
    with script_errors():
        return update_hook(hook, **changes)


field = graphene.Field(
    graphene.NonNull(HookType),
    description="Changes what is given of a hook.",
    args={
        "id": graphene.ID(required=True, description="The HookID."),
        "name": graphene.String(description="Who calls it."),
        "enabled": graphene.Boolean(description="False: it answers as if it did not exist."),
    },
    resolver=resolve,
)
