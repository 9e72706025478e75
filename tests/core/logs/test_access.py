import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from core.logs.access import AccessLog, _in_columns
from core.logs.context import bind, unbind_all
from core.logs.setup import Event, renderer

SECRET = "mhs_0123456789abcdef"


@pytest.fixture
def no_context() -> Iterator[None]:
    unbind_all()
    yield
    unbind_all()


def test_what_callers_and_views_have_set_is_redacted(
    no_context: None, capfd: pytest.CaptureFixture[str]
) -> None:
    organisation = uuid.uuid4()
    bind(organisation=organisation, note=f"got {SECRET}", numbers=[1, SECRET])
    environ = {
        "REQUEST_METHOD": SECRET,
        "RAW_URI": f"/a/{SECRET}?{SECRET}",
        "REMOTE_ADDR": "127.0.0.1",
    }
    AccessLog(is_json=True).write(environ, "200 OK", 5, timedelta(milliseconds=1))

    line = json.loads(capfd.readouterr().err)
    age = datetime.now(UTC) - datetime.strptime(line.pop("timestamp"), "%Y-%m-%dT%H:%M:%S.%f%z")
    assert timedelta() <= age < timedelta(seconds=60)
    assert line == {
        "event": "request",
        "method": "mhs_[redacted]",
        "path": "/a/mhs_[redacted]",
        "status": 200,
        "bytes": 5,
        "duration_ms": 1.0,
        "client": "127.0.0.1",
        "organisation": str(organisation),
        "note": "got mhs_[redacted]",
        "numbers": [1, "mhs_[redacted]"],
        "level": "info",
        "logger": "moonhook.access",
    }


def test_access_lines_have_the_columns_of_console_lines() -> None:
    event: Event = {
        "timestamp": "2026-01-01T00:00:00.000000Z",
        "event": "request",
        "method": "POST",
        "path": "/hook/a b/[redacted]",
        "status": 200,
        "duration_ms": 1.5,
        "client": "",
        "level": "info",
        "logger": "moonhook.access",
    }

    assert _in_columns(None, "info", dict(event)) == renderer(is_json=False)(None, "info", event)
