from http import HTTPStatus

import pytest
from django.template.loader import render_to_string
from django.test import Client, RequestFactory

from core.http.problem_handlers import server_error
from tests.admin.pages import text_of


@pytest.mark.parametrize("template", ["400.html", "403.html", "404.html", "500.html"])
def test_error_pages_load_nothing(template: str) -> None:
    text = render_to_string(template)

    assert "<h1>" in text
    assert "src=" not in text
    assert "stylesheet" not in text
    assert 'href="/admin/"' in text


def test_an_unknown_object_gives_the_not_found_page(as_bob: Client) -> None:
    response = as_bob.get("/admin/scripts_engine/script/no-uuid/change/")

    assert response.status_code == HTTPStatus.NOT_FOUND
    assert "Page not found" in text_of(response)


def test_an_unknown_filter_gives_the_invalid_request_page(as_bob: Client) -> None:
    response = as_bob.get("/admin/scripts_engine/script/?nothing=1")

    assert response.status_code == HTTPStatus.BAD_REQUEST
    assert "Invalid request" in text_of(response)


def test_an_unknown_parameter_of_the_search_is_refused(as_bob: Client) -> None:
    assert as_bob.get("/admin/search/", {"s": "runs"}).status_code == HTTPStatus.OK
    refused = as_bob.get("/admin/search/", {"s": "runs", "page": "2"})

    assert refused.status_code == HTTPStatus.BAD_REQUEST
    assert "Invalid request" in text_of(refused)


def test_an_unexpected_error_gives_an_error_page() -> None:
    response = server_error(RequestFactory().get("/admin/"))

    assert response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "Something went wrong" in text_of(response)
