from core.logs.access import _in_columns
from core.logs.events import Event, renderer


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
