"""Headers from clients and proxies that the web server trusts or ignores."""

import http.client
from collections.abc import Iterator

import pytest

from tests.moonhook_server import WebServer

HTTPS = {"PUBLIC_URL": "https://hooks.example.com", "ALLOWED_HOSTS": "127.0.0.1"}


def get(port: int, path: str, **headers: str) -> http.client.HTTPResponse:
    """Sends header names with their underscores unchanged."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with WebServer(tmp_path_factory.mktemp("data"), WEB_CONCURRENCY="1", **HTTPS).running() as web:
        yield web


@pytest.fixture(scope="module")
def server_behind_a_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    environment = {"TRUSTED_PROXY_COUNT": "1", "WEB_CONCURRENCY": "1", **HTTPS}
    with WebServer(tmp_path_factory.mktemp("data"), **environment).running() as web:
        yield web


def test_the_path_is_the_requested_one(server: WebServer) -> None:
    assert get(server.port, "/healthz").status == 200
    assert get(server.port, "/x/healthz").status == 404


@pytest.mark.parametrize("name", ["SCRIPT_NAME", "script_name", "Script-Name", "HTTP_SCRIPT_NAME"])
def test_no_header_moves_the_path(server: WebServer, name: str) -> None:
    assert get(server.port, "/x/healthz", **{name: "/x"}).status == 404
    assert get(server.port, "/healthz", **{name: "/healthz"}).status == 200


@pytest.mark.parametrize("name", ["PATH_INFO", "Path-Info", "REMOTE_USER", "RAW_URI"])
def test_no_header_overrides_a_server_variable(server: WebServer, name: str) -> None:
    assert get(server.port, "/healthz", **{name: "/nowhere"}).status == 200
    assert get(server.port, "/nowhere", **{name: "/healthz"}).status == 404


@pytest.mark.parametrize("name", ["X-Forwarded-Proto", "X-Forwarded-Ssl", "X-Forwarded-Protocol"])
def test_without_a_trusted_proxy_no_header_makes_a_request_secure(
    server: WebServer, name: str
) -> None:
    for_https = {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on"}.get(name, "ssl")
    response = get(server.port, "/healthz", **{name: for_https})

    assert response.status == 200
    assert response.headers["Strict-Transport-Security"] is None


def test_a_trusted_proxy_sets_the_scheme(
    server_behind_a_proxy: WebServer,
) -> None:
    port = server_behind_a_proxy.port
    secure = get(port, "/healthz", **{"X-Forwarded-Proto": "https"})
    plain = get(port, "/healthz", **{"X-Forwarded-Proto": "http"})
    # Only the header that the proxy sets counts, not those that a client adds.
    both = get(port, "/healthz", **{"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "off"})

    assert secure.headers["Strict-Transport-Security"]
    assert plain.headers["Strict-Transport-Security"] is None
    assert (both.status, both.headers["Strict-Transport-Security"]) == (
        200,
        secure.headers["Strict-Transport-Security"],
    )


def test_an_underscore_does_not_fake_a_proxys_header(server_behind_a_proxy: WebServer) -> None:
    response = get(server_behind_a_proxy.port, "/healthz", X_Forwarded_Proto="https")

    assert response.status == 200
    assert response.headers["Strict-Transport-Security"] is None
