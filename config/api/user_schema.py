"""The schema of /user/graphql: login by PIN, and users' own accounts."""

import graphene

from accounts.graphql import people
from accounts.graphql.people import AccountsQuery
from core.graphql.resolving import placed_here
from sessions_api.graphql.people import SessionsQuery, end_session_field

# Root fields that need no session.
ANONYMOUS_FIELDS = frozenset({"sendPinCode", "checkPinCode", "__schema", "__type", "__typename"})


class Query(AccountsQuery, SessionsQuery, graphene.ObjectType):
    """The data of the device session's user."""


class Mutation(graphene.ObjectType):
    """Login, and changes to the user's own account."""

    send_pin_code = placed_here(people.send_pin_code_field)
    check_pin_code = placed_here(people.check_pin_code_field)
    revoke_device = placed_here(people.revoke_device_field)
    end_session = placed_here(end_session_field)
    accept_invitation = placed_here(people.accept_invitation_field)
    decline_invitation = placed_here(people.decline_invitation_field)


schema = graphene.Schema(query=Query, mutation=Mutation)
