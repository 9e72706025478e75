"""Paths that nothing has, outside the admin's pages."""

import pytest

from tests.client import Client

WITH_SLASH = "No such path. Paths have no trailing slash."


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/admin/graphql/", WITH_SLASH),
        ("/user/graphql/", WITH_SLASH),
        ("/admin/schema.graphql/", WITH_SLASH),
        ("/admin/blobs/", WITH_SLASH),
        ("/session/", WITH_SLASH),
        ("/metrics/", WITH_SLASH),
        ("/admin/graphql/x", "No such path."),
        ("/nowhere", "No such path."),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_unknown_path_is_a_problem_document(path: str, detail: str, method: str) -> None:
    client = Client(enforce_csrf_checks=True)

    response = client.generic(method, path, b"{}", "application/json")

    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert (response.json()["code"], response.json()["detail"]) == ("not-found", detail)
    assert "Content-Security-Policy" not in response
    assert not response.cookies


@pytest.mark.parametrize("path", ["/hook/", "/hook/x/y/z/", "/hook/secure/x/"])
def test_unknown_path_of_hooks_names_its_trailing_slash(path: str) -> None:
    response = Client().post(path, b"", content_type="text/plain")

    assert response.status_code == 404
    assert (response.json()["code"], response.json()["detail"]) == ("not-found", WITH_SLASH)
