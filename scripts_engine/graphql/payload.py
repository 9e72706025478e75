"""The payload of a run that a program starts, as the event that its script gets."""

from graphql import GraphQLResolveInfo

from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.http.client_address import client_address
from core.plain_text import is_encodable
from scripts_engine.event import Event


def event_of(info: GraphQLResolveInfo, body: str | None) -> Event:
    """Raises BAD_USER_INPUT for text that UTF-8 cannot encode."""
    payload = body or ""
    if not is_encodable(payload):
        raise GraphQLProblem(
            GraphQLCode.BAD_USER_INPUT, "The body is not valid text.", field="body"
        )
    return Event(
        method="POST",
        query="",
        headers=(),
        body=payload.encode(),
        client_address=client_address(info.context.request),
    )
