"""The schema of /user/graphql: logging in by PIN, and what people do with their own account."""

import graphene

from accounts.graphql.people import (
    answer_invitation,
    check_pin_code,
    revoke_device,
    send_pin_code,
)
from accounts.graphql.people.me import AccountsQuery
from sessions_api.graphql.people import SessionsQuery, end_session_field

# What is there for those who have no session yet.
ANONYMOUS_FIELDS = frozenset({"sendPinCode", "checkPinCode", "__schema", "__type", "__typename"})


class Query(AccountsQuery, SessionsQuery, graphene.ObjectType):
    """What a device session may ask about its user."""


class Mutation(graphene.ObjectType):
    """Logging in, and ending what is open."""

    send_pin_code = send_pin_code.field
    check_pin_code = check_pin_code.field
    revoke_device = revoke_device.field
    end_session = end_session_field
    accept_invitation = answer_invitation.accept_field
    decline_invitation = answer_invitation.decline_field


schema = graphene.Schema(query=Query, mutation=Mutation)
