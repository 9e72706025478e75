"""The two GraphQL endpoints."""

from django.conf import settings

from config.api import admin_schema, user_schema
from config.api.concurrency import documents, holder_of
from config.api.doors import people_only, programs_only, same_origin_only
from core.graphql.view import GraphQLOverHTTPView

user_graphql = GraphQLOverHTTPView.as_view(
    schema=user_schema.schema,
    max_body_bytes=settings.USER_GRAPHQL_MAX_BODY_BYTES,
    door=people_only,
    guard=same_origin_only,
    bulkhead=documents,
    holder=holder_of,
    anonymous_fields=user_schema.ANONYMOUS_FIELDS,
    max_root_mutation_fields=1,
)

admin_graphql = GraphQLOverHTTPView.as_view(
    schema=admin_schema.schema,
    max_body_bytes=settings.ADMIN_GRAPHQL_MAX_BODY_BYTES,
    door=programs_only,
    guard=same_origin_only,
    bulkhead=documents,
    holder=holder_of,
)
