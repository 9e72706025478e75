"""GraphQL mutations that set and delete secrets."""

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation
from core.http.origin import origin_of
from scripts_engine.flows.secrets import delete_secret, set_secret
from scripts_engine.graphql.script_errors import script_errors
from scripts_engine.graphql.types import SecretType
from scripts_engine.models import Secret


def resolve_set_secret(root: None, info: GraphQLResolveInfo, name: str, value: str) -> Secret:
    with script_errors():
        return set_secret(
            caller_organisation(info),
            name=name,
            value=value,
            origin=origin_of(info.context.request),
        )


set_secret_field = graphene.Field(
    graphene.NonNull(SecretType),
    description="Creates or replaces a secret. Scripts read the new value from their next run on.",
    args={
        "name": graphene.String(required=True, description="The name in scripts."),
        "value": graphene.String(required=True, description="At most 16 KiB. Never shown."),
    },
    resolver=resolve_set_secret,
)


def resolve_delete_secret(root: None, info: GraphQLResolveInfo, name: str) -> bool:
    with script_errors():
        delete_secret(caller_organisation(info), name, origin=origin_of(info.context.request))
    return True


delete_secret_field = graphene.Boolean(
    required=True,
    description="Deletes a secret. Scripts that read it get nil.",
    args={"name": graphene.String(required=True, description="The name in scripts.")},
    resolver=resolve_delete_secret,
)
