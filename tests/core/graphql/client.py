"""A client of one endpoint, without a server or a database."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import RequestFactory

from core.graphql.reply import GRAPHQL_RESPONSE
from tests.core.graphql.endpoints import ALICE, admin_endpoint, user_endpoint


def post(
    query: Any,
    *,
    variables: Any = None,
    accept: str = GRAPHQL_RESPONSE,
    headers: dict[str, str] | None = None,
    admin: bool = False,
    **members: Any,
) -> HttpResponse:
    body = json.dumps({"query": query, "variables": variables, **members})
    return post_raw(body, accept=accept, headers=headers, admin=admin)


def post_as_alice(query: Any, **options: Any) -> HttpResponse:
    return post(query, headers={"Authorization": ALICE}, **options)


def post_raw(
    body: str | bytes,
    *,
    content_type: str = "application/json",
    accept: str = GRAPHQL_RESPONSE,
    headers: dict[str, str] | None = None,
    admin: bool = False,
    path: str = "/graphql",
) -> HttpResponse:
    request = RequestFactory().generic(
        "POST",
        path,
        body,
        content_type,
        headers={"Accept": accept, **(headers or {})},
        CONTENT_TYPE=content_type,  # The factory itself leaves it out of an empty request.
    )
    request.request_id = "f00d"  # type: ignore[attr-defined]
    return (admin_endpoint if admin else user_endpoint)(request)


def answer(response: HttpResponse) -> dict[str, Any]:
    return json.loads(response.content)


def codes(response: HttpResponse) -> list[str]:
    return [error["extensions"]["code"] for error in answer(response)["errors"]]
