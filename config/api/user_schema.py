"""The schema of /user/graphql: logging in by PIN, and what people do with their own account."""

import graphene

from accounts.graphql.people import account, login
from accounts.graphql.people.account import AccountsQuery
from sessions_api.graphql.people import SessionsQuery, end_session_field

# What is there for those who have no session yet.
ANONYMOUS_FIELDS = frozenset({"sendPinCode", "checkPinCode", "__schema", "__type", "__typename"})


class Query(AccountsQuery, SessionsQuery, graphene.ObjectType):
    """What a device session may ask about its user."""


class Mutation(graphene.ObjectType):
    """Logging in, and ending what is open."""

    send_pin_code = login.send_pin_code_field
    check_pin_code = login.check_pin_code_field
    revoke_device = account.revoke_device_field
    end_session = end_session_field
    accept_invitation = account.accept_invitation_field
    decline_invitation = account.decline_invitation_field


schema = graphene.Schema(query=Query, mutation=Mutation)
