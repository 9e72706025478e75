"""Stored values in GraphQL: the store that an organisation's scripts share."""

import base64
import binascii
from datetime import datetime

import graphene
from graphql import GraphQLResolveInfo

from accounts.graphql.scope import caller_organisation, scoped
from accounts.graphql.shared import expected_revision
from core.graphql.connection import Page, connection_field, connection_of, page_of
from core.graphql.mutation import mutation
from core.graphql.problem import GraphQLCode, GraphQLProblem
from core.graphql.resolving import as_utc, caller_origin
from scripts_engine.models import StoredValue
from scripts_engine.stored_values import MAX_KEY_BYTES, delete_stored_value, set_stored_value

BY_KEY = "in the order of their keys' bytes"


class StoredValueType(graphene.ObjectType):
    """A value that scripts keep between runs."""

    class Meta:
        name = "StoredValue"

    key = graphene.String(description="The key as text; null if it is not UTF-8.")
    key_base64 = graphene.String(
        name="keyBase64", required=True, description="The key's bytes in Base64."
    )
    value = graphene.String(required=True, description="The value as JSON text.")
    expires_at = graphene.DateTime(description="When it is deleted. Null: never.")
    updated_at = graphene.DateTime(
        required=True, description="When it was last set, also by a script."
    )
    revision = graphene.Int(
        required=True,
        description="Grows with each change by people and programs, for `expectedRevision`. "
        "Writes of scripts are not counted.",
    )

    @staticmethod
    def resolve_key(stored: StoredValue, info: GraphQLResolveInfo) -> str | None:
        try:
            return bytes(stored.key).decode()
        except UnicodeDecodeError:
            return None

    @staticmethod
    def resolve_key_base64(stored: StoredValue, info: GraphQLResolveInfo) -> str:
        return base64.b64encode(bytes(stored.key)).decode()


StoredValueConnection = connection_of(StoredValueType, BY_KEY)


def _key_arguments() -> dict[str, graphene.Scalar]:
    return {
        "key": graphene.String(description=f"The key, 1 to {MAX_KEY_BYTES} bytes in UTF-8."),
        "key_base64": graphene.String(
            name="keyBase64", description="Instead of `key`: its bytes in Base64."
        ),
    }


def _key_of(key: str | None, key_base64: str | None) -> bytes:
    if (key is None) == (key_base64 is None):
        raise _bad("key", "Give either key or keyBase64.")
    if key is not None:
        return key.encode()
    try:
        return base64.b64decode(str(key_base64), validate=True)
    except (binascii.Error, ValueError):
        raise _bad("keyBase64", "This is not Base64.") from None


def _bad(field: str, message: str) -> GraphQLProblem:
    return GraphQLProblem(GraphQLCode.BAD_USER_INPUT, message, field=field)


def _live_value(info: GraphQLResolveInfo, key: bytes) -> StoredValue | None:
    rows = scoped(info, StoredValue).live().filter(key=key)
    stored: StoredValue | None = rows.select_related("organisation").first()
    return stored


class StoredValuesQuery(graphene.ObjectType):
    stored_values = connection_field(
        StoredValueConnection,
        "The values that the organisation's scripts keep between runs.",
        BY_KEY,
        prefix=graphene.String(description="Only keys that begin with this text."),
    )
    stored_value = graphene.Field(
        StoredValueType, description="The value of a key, or null.", **_key_arguments()
    )

    @staticmethod
    def resolve_stored_values(
        root: None,
        info: GraphQLResolveInfo,
        first: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
    ) -> Page:
        rows = scoped(info, StoredValue).live().order_by("key")
        if prefix:
            rows = rows.beginning_with(prefix.encode())
        return page_of(info, rows, first, after)

    @staticmethod
    def resolve_stored_value(
        root: None,
        info: GraphQLResolveInfo,
        key: str | None = None,
        key_base64: str | None = None,
    ) -> StoredValue | None:
        return _live_value(info, _key_of(key, key_base64))


@mutation(
    StoredValueType,
    "Creates or replaces a stored value, with the limits of `store.set`.",
    **_key_arguments(),
    value=graphene.String(required=True, description="JSON text, at most 64 KiB."),
    expires_at=graphene.DateTime(
        description="When the value is deleted, within ten years. Null: never."
    ),
    expected_revision=expected_revision(),
)
def set_stored_value_field(
    info: GraphQLResolveInfo,
    value: str,
    key: str | None = None,
    key_base64: str | None = None,
    expires_at: datetime | None = None,
    expected_revision: int | None = None,
) -> StoredValue:
    return set_stored_value(
        caller_organisation(info),
        key=_key_of(key, key_base64),
        value=value,
        expires_at=None if expires_at is None else as_utc(expires_at, "expiresAt"),
        origin=caller_origin(info),
        expected_revision=expected_revision,
    )


@mutation(
    graphene.Boolean,
    "Deletes a stored value.",
    **_key_arguments(),
    expected_revision=expected_revision(),
)
def delete_stored_value_field(
    info: GraphQLResolveInfo,
    key: str | None = None,
    key_base64: str | None = None,
    expected_revision: int | None = None,
) -> bool:
    stored = _live_value(info, _key_of(key, key_base64))
    if stored is None:
        raise GraphQLProblem(GraphQLCode.NOT_FOUND, "There is no such value.")
    delete_stored_value(stored, origin=caller_origin(info), expected_revision=expected_revision)
    return True
