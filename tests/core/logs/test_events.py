"""Rendering log events as lines."""

import json
import logging
import sys
from typing import Any

import pytest
import structlog

from accounts.credentials import SecretKind, generate_secret
from core.logs.context import binding, unbind_all
from core.logs.setup import event_formatter


def line_of(record: logging.LogRecord) -> dict[str, Any]:
    line = event_formatter(is_json=True).format(record)
    assert "\n" not in line
    event: dict[str, Any] = json.loads(line)
    return event


def record_of(message: str, *args: object, exc_info: Any = None) -> logging.LogRecord:
    return logging.LogRecord("some.library", logging.ERROR, "x.py", 1, message, args, exc_info)


@pytest.fixture(autouse=True)
def _of_no_request() -> None:
    unbind_all()


@pytest.fixture
def handler() -> logging.StreamHandler[Any]:
    """Returns the only handler, through which every event goes."""
    [stderr] = [
        each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler
    ]
    return stderr


def test_a_library_record_becomes_an_event_with_context() -> None:
    with binding(request_id="abc", run="def"):
        event = line_of(record_of("it took %d s", 5))

    assert event.pop("timestamp").endswith("Z")
    assert event == {
        "event": "it took 5 s",
        "level": "error",
        "logger": "some.library",
        "request_id": "abc",
        "run": "def",
    }


@pytest.mark.parametrize("kind", SecretKind)
def test_secrets_are_redacted_in_every_part_of_an_event(kind: SecretKind) -> None:
    secret = generate_secret(kind)
    try:
        raise ValueError(f"cannot use {secret}")
    except ValueError:
        record = record_of("got %s", secret, exc_info=sys.exc_info())
    with binding(text=secret, nested={"list": [{secret: secret}]}, thing=ValueError(secret)):
        event = line_of(record)

    assert secret not in json.dumps(event)
    assert "ValueError: cannot use" in event["exception"]
    assert event["text"] == f"{kind}[redacted]"
    assert event["nested"] == {"list": [{f"{kind}[redacted]": f"{kind}[redacted]"}]}
    assert event["thing"] == f"{kind}[redacted]"


def test_console_lines_are_redacted_too() -> None:
    secret = generate_secret(SecretKind.CALL_TOKEN)
    with binding(run="def"):
        line = event_formatter(is_json=False).format(record_of("got %s", secret))

    assert secret not in line
    assert "got mhc_[redacted]" in line
    assert "run=def" in line


def test_numbers_stay_numbers() -> None:
    with binding(status=200, duration_ms=1.5, is_new=True, nothing=None):
        event = line_of(record_of("x"))

    assert [event[name] for name in ("status", "duration_ms", "is_new", "nothing")] == [
        200,
        1.5,
        True,
        None,
    ]


def test_structlog_events_and_warnings_use_the_same_handler(
    handler: logging.StreamHandler[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(handler, "formatter", event_formatter(is_json=True))
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(handler.format(record)))
    structlog.get_logger("some.module").warning("Not done", token="mhs_abc", count=3)
    structlog.get_logger("some.module").debug("Not wanted", token="mhs_abc")

    [event] = [json.loads(line) for line in lines]
    assert event.pop("timestamp")
    assert event == {
        "event": "Not done",
        "level": "warning",
        "logger": "some.module",
        "token": "mhs_[redacted]",
        "count": 3,
    }
