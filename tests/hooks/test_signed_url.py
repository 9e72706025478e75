"""The URL that a sender signed: that under PUBLIC_URL, as the client sent it."""

import pytest
from django.test import override_settings

from hooks.edge.http import CallRequest

PATH = "/hook/o/s/mhc_%41"


def url_of(raw_uri: str | None, **environ: str) -> str:
    known = {"REQUEST_METHOD": "POST", "PATH_INFO": "/hook/o/s/mhc_A", "QUERY_STRING": "a=%7e"}
    raw = {} if raw_uri is None else {"RAW_URI": raw_uri}
    with override_settings(PUBLIC_URL="https://hooks.example"):
        return CallRequest.of({**known, **raw, **environ}).url


@pytest.mark.parametrize(
    ("raw_uri", "url"),
    [
        (PATH, PATH),
        (f"{PATH}?a=%7e&b=+", f"{PATH}?a=%7e&b=+"),
        (f"{PATH}?", f"{PATH}?"),
        (f"http://10.0.0.1:8000{PATH}?a=%7e", f"{PATH}?a=%7e"),
        (f"http://evil.example{PATH}?next=http://x/", f"{PATH}?next=http://x/"),
        ("http://evil.example", "/"),
    ],
)
def test_path_and_query_are_those_of_the_request_line(raw_uri: str, url: str) -> None:
    assert url_of(raw_uri) == f"https://hooks.example{url}"


def test_a_server_that_keeps_no_request_line_gets_the_usual_encoding() -> None:
    path = "/hook/o/s/é ü".encode().decode("latin-1")

    assert url_of(None) == "https://hooks.example/hook/o/s/mhc_A?a=%7e"
    assert url_of(None, PATH_INFO=path, QUERY_STRING="") == (
        "https://hooks.example/hook/o/s/%C3%A9%20%C3%BC"
    )
