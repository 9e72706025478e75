import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import find
from core.http.origin import origin_of
from scripts_engine.flows.hooks import issue_hook
from scripts_engine.graphql.mutations.issued_hook import as_issued_hook
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import IssuedHook
from scripts_engine.models import Script


def resolve(
    root: None, info: GraphQLResolveInfo, script: str, name: str | None = None
) -> IssuedHook:
    row = find(info, Script, script)
    with script_errors():
        return as_issued_hook(
            issue_hook(row, name=name or "", origin=origin_of(info.context.request))
        )


field = graphene.Field(
    graphene.NonNull(IssuedHook),
    description="Makes a webhook for a script. Its call token is in this answer only.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "name": graphene.String(description="Who calls it."),
    },
    resolver=resolve,
)
