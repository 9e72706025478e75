from datetime import datetime
from enum import Enum

import graphene
from graphql import GraphQLResolveInfo

from accounts.addresses import canonical_email
from accounts.graphql.programs.types import (
    ApiKeyConnection,
    AuthEventConnection,
    DeviceConnection,
    Member,
    MemberConnection,
    MemberPage,
    MemberType,
    OrganisationType,
    member_of,
)
from accounts.graphql.scope import caller_organisation, find, find_known_user, known_users, scoped
from accounts.graphql.shared import MembershipStatus, enum_value
from accounts.models import ApiKey, AuthEvent, DeviceToken, Organisation, User
from core.graphql.connection import Page, connection_field, page_of
from core.graphql.feed import settled
from core.graphql.resolving import as_utc
from core.plain_text import storable


class AccountsQuery(graphene.ObjectType):
    organisation = graphene.Field(
        graphene.NonNull(OrganisationType), description="The organisation of the API key."
    )
    users = connection_field(
        MemberConnection,
        "The organisation's members and invited users.",
        email=graphene.String(description="Only the user with this e-mail."),
        status=MembershipStatus(description="Only members, or only invited users."),
    )
    user = graphene.Field(
        MemberType,
        description="A member or invited user of the organisation.",
        id=graphene.ID(required=True, description="The user's id."),
    )
    api_keys = connection_field(
        ApiKeyConnection, "The organisation's API keys, including revoked ones."
    )
    auth_events = connection_field(
        AuthEventConnection,
        "The organisation's audit log.",
        kind=graphene.String(description="Only events of this kind."),
        user=graphene.ID(description="Only events about this user."),
        since=graphene.DateTime(description="Only events from this time on."),
        until=graphene.DateTime(description="Only events before this time."),
        oldest_first=graphene.Boolean(
            default_value=False,
            description=(
                "Oldest first, in the order in which they were committed, so that a program can "
                "follow the log without missing any: ask again `after` the last `endCursor`."
            ),
        ),
    )
    devices = connection_field(
        DeviceConnection,
        "Devices of users whose home is the organisation.",
        user=graphene.ID(description="Only devices of this user."),
    )

    @staticmethod
    def resolve_organisation(root: None, info: GraphQLResolveInfo) -> Organisation:
        return caller_organisation(info)

    @staticmethod
    def resolve_users(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        email: str | None = None,
        status: Enum | None = None,
    ) -> MemberPage:
        is_accepted = None if status is None else enum_value(status) == "accepted"
        address = None if email is None else canonical_email(email)
        organisation = caller_organisation(info)
        rows = known_users(organisation, email=address, is_accepted=is_accepted)
        page = page_of(info, rows.order_by("-since", "-id"), first, after)
        return MemberPage(organisation, page)

    @staticmethod
    def resolve_user(root: None, info: GraphQLResolveInfo, id: str) -> Member:
        return member_of(caller_organisation(info), find_known_user(info, id))

    @staticmethod
    def resolve_api_keys(
        root: None, info: GraphQLResolveInfo, first: int | None = None, after: str | None = None
    ) -> Page:
        return page_of(info, scoped(info, ApiKey), first, after)

    @staticmethod
    def resolve_auth_events(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        kind: str | None = None,
        user: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        oldest_first: bool | None = False,
    ) -> Page:
        rows = scoped(info, AuthEvent)
        if oldest_first:
            rows = settled(rows, "written_in")
        rows = rows.between(
            None if since is None else as_utc(since, "since"),
            None if until is None else as_utc(until, "until"),
        )
        if kind is not None:
            rows = rows.of_kind(storable(kind))
        if user is not None:
            # A filter by the hidden actor of an event would tell who it was.
            rows = rows.filter(user=find(info, User, user)).naming_the_actor()
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_devices(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        user: str | None = None,
    ) -> Page:
        rows = (
            scoped(info, DeviceToken).select_related("user").prefetch_related("user__memberships")
        )
        rows = rows.of_own_users(caller_organisation(info))
        if user is not None:
            rows = rows.filter(user=find(info, User, user))
        return page_of(info, rows, first, after)
