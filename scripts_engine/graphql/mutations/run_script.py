import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_key, find
from core.graphql.problem import GraphQLProblem
from core.http.client_address import client_address
from core.plain_text import is_encodable
from scripts_engine.event import Event
from scripts_engine.flows.author import Author
from scripts_engine.flows.try_script import try_script
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import RunType
from scripts_engine.models import Run, Script, Trigger


def resolve(root: None, info: GraphQLResolveInfo, script: str, body: str | None = "") -> Run:
    row = find(info, Script, script)
    payload = body or ""
    if not is_encodable(payload):
        raise GraphQLProblem("BAD_USER_INPUT", "The body is not text in UTF-8.", field="body")
    event = Event(
        method="POST",
        query="",
        headers=(),
        body=payload.encode(),
        client_address=client_address(info.context.request),
    )
    # A script has a slot of the sandbox instead.
    with script_errors(), info.context.place_left_to_others():
        return try_script(
            row,
            event=event,
            author=Author(api_key=caller_key(info)),
            trigger=Trigger.ADMIN_GRAPHQL,
        )


field = graphene.Field(
    graphene.NonNull(RunType),
    description="Runs a script's current version now and answers with the run.",
    args={
        "script": graphene.ID(required=True, description="The script's id."),
        "body": graphene.String(default_value="", description="The payload."),
    },
    resolver=resolve,
)
