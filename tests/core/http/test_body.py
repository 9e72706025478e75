"""Reading a request's body unchanged and within a limit."""

import io

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest
from django.test import RequestFactory

from core.http.body import BodyIncomplete, BodyTooLarge, read_body

EVERY_BYTE = bytes(range(256))


def request_with(body: io.BytesIO, **environ: object) -> HttpRequest:
    return WSGIRequest({"REQUEST_METHOD": "POST", "wsgi.input": body, **environ})


def chunked(body: io.BytesIO) -> HttpRequest:
    """A chunked body as servers pass it to WSGI: decoded, terminated, without a length."""
    return request_with(
        body, **{"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    )


class BrokenStream(io.BytesIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def read(self, size: int | None = -1) -> bytes:
        raise self._error


def test_a_body_with_a_length_is_read_whole() -> None:
    request = RequestFactory().generic("POST", "/", EVERY_BYTE)

    assert read_body(request, 256) == EVERY_BYTE


def test_a_chunked_body_is_read_whole() -> None:
    assert read_body(chunked(io.BytesIO(EVERY_BYTE)), 256) == EVERY_BYTE


@pytest.mark.parametrize("length", [None, "", "0"])
def test_a_request_without_a_body_has_an_empty_one(length: str | None) -> None:
    request = request_with(io.BytesIO(b"the next request"), CONTENT_LENGTH=length)

    assert read_body(request, 256) == b""


def test_an_empty_chunked_body_is_empty() -> None:
    assert read_body(chunked(io.BytesIO()), 256) == b""


def test_a_multipart_body_stays_as_it_is() -> None:
    request = RequestFactory().post("/", {"name": "alice"})

    body = read_body(request, 1_000)

    assert b'name="name"' in body
    assert request.POST == {}


def test_a_body_that_was_read_before_is_still_there() -> None:
    request = RequestFactory().generic("POST", "/", EVERY_BYTE)
    assert request.body == EVERY_BYTE

    assert read_body(request, 256) == EVERY_BYTE


def test_bytes_after_the_declared_length_are_not_read() -> None:
    stream = io.BytesIO(b"bodythe next request")

    assert read_body(request_with(stream, CONTENT_LENGTH="4"), 256) == b"body"
    assert stream.tell() == 4


def test_a_declared_length_over_the_limit_is_refused_unread() -> None:
    stream = io.BytesIO(EVERY_BYTE)

    with pytest.raises(BodyTooLarge):
        read_body(request_with(stream, CONTENT_LENGTH="256"), 255)
    assert stream.tell() == 0


def test_a_chunked_body_over_the_limit_is_read_one_byte_further() -> None:
    stream = io.BytesIO(EVERY_BYTE * 1_000)

    with pytest.raises(BodyTooLarge):
        read_body(chunked(stream), 100_000)
    assert stream.tell() == 100_001


def test_a_body_over_djangos_own_limit_is_ours_to_judge(settings: object) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10  # type: ignore[attr-defined]
    request = RequestFactory().generic("POST", "/", EVERY_BYTE)

    assert read_body(request, 256) == EVERY_BYTE


@pytest.mark.parametrize(
    "length", ["-1", "+4", "4.0", "four", "0x4", "4,4", "٤", " 4", "9" * 5_000]
)
def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    stream = io.BytesIO(b"body")

    with pytest.raises(BodyIncomplete):
        read_body(request_with(stream, CONTENT_LENGTH=length), 256)
    assert stream.tell() == 0


def test_a_body_that_ends_early_is_incomplete() -> None:
    with pytest.raises(BodyIncomplete):
        read_body(request_with(io.BytesIO(b"bo"), CONTENT_LENGTH="4"), 256)


def test_a_client_that_left_leaves_an_incomplete_body() -> None:
    stream = BrokenStream(ConnectionResetError())

    with pytest.raises(BodyIncomplete):
        read_body(request_with(stream, CONTENT_LENGTH="4"), 256)


@pytest.mark.parametrize("error", [ConnectionResetError(), RuntimeError("bad chunk")])
def test_broken_chunks_are_an_incomplete_body(error: Exception) -> None:
    with pytest.raises(BodyIncomplete):
        read_body(chunked(BrokenStream(error)), 256)


def test_a_server_without_chunked_decoding_refuses_chunks() -> None:
    request = request_with(io.BytesIO(b"4\r\nbody\r\n0\r\n\r\n"), HTTP_TRANSFER_ENCODING="chunked")

    with pytest.raises(BodyIncomplete):
        read_body(request, 256)
