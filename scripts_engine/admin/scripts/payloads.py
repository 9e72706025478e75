"""Recent calls of a script, to try it with what really came."""

from datetime import UTC, datetime
from typing import Any

from accounts.models import RunStorage
from core.http.redaction import REDACTED
from scripts_engine.admin.scripts.try_form import headers_as_text
from scripts_engine.models import Run, Script, Trigger

OFFERED = 20
# The newest runs, among which calls are looked for: a script may have a million of other runs.
LOOKED_AT = 200
MAX_TEXT_BYTES = 200_000


def recent_calls(script: Script) -> list[dict[str, Any]]:
    """The newest calls that came over the network, without their bodies."""
    runs = (
        script.runs.select_related("hook")
        .only("trigger", "started_at", "request_method", "status", "hook__name")
        .order_by("-id")[:LOOKED_AT]
    )
    removed_before = _payloads_removed_before(script)
    calls = [
        run for run in runs if run.trigger == Trigger.HOOK and run.started_at > removed_before
    ][:OFFERED]
    return [
        {
            "run": str(run.pk),
            "title": f"{run.started_at:%Y-%m-%d %H:%M:%S} {run.request_method}, "
            f"{run.hook}: {run.get_status_display().lower()}",
        }
        for run in calls
    ]


def _payloads_removed_before(script: Script) -> datetime:
    """Which saves reading it of each run: SQLite would read the payloads, too."""
    storage = RunStorage.objects.filter(pk=script.organisation_id).first()
    return (storage and storage.removed_before) or datetime.min.replace(tzinfo=UTC)


def payload_of(run: Run) -> dict[str, Any]:
    """The call as *Try it* takes it; ``body`` is ``None`` where no text area could hold it."""
    return {
        "run": str(run.pk),
        "method": run.request_method,
        "query": run.request_query,
        "headers": headers_as_text(run, without=REDACTED),
        "body": _text(bytes(run.request_body)),
        "size": len(run.request_body),
    }


def _text(body: bytes) -> str | None:
    if len(body) > MAX_TEXT_BYTES or b"\0" in body or b"\r" in body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
