"""Mistyped addresses lead to an error page, never to an internal error."""

from http import HTTPStatus

import pytest
from django.test import Client

pytestmark = pytest.mark.postgresql


@pytest.mark.parametrize(
    "path",
    [
        "/admin/accounts/user/?memberships__organisation__id__exact=x",
        "/admin/accounts/user/?memberships__organisation__id__exact=%00",
        "/admin/scripts_engine/run/?script__id__exact=x",
        "/admin/scripts_engine/run/?q=%00",
        "/admin/accounts/user/add/?organisation=x",
        "/admin/accounts/apikey/add/?organisation=%00",
        "/admin/scripts_engine/script/add/?organisation=%00",
        "/admin/hooks/hook/add/?script=x",
        "/admin/accounts/user/x/change/",
        "/admin/accounts/user/%00/change/",
        "/admin/r/1/x/",
        "/admin/r/x/x/",
        "/admin/nowhere/",
    ],
)
def test_a_wrong_address_is_no_internal_error(as_bob: Client, path: str) -> None:
    response = as_bob.get(path, follow=True)

    assert response.status_code in {HTTPStatus.OK, HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND}
