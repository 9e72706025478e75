"""Requests of a script's runs, which Try it offers to send again."""

from datetime import UTC, datetime
from typing import Any

from django.db.models import BinaryField
from django.db.models.functions import Substr

from accounts.models import RunStorage
from core.http.redaction import REDACTED
from scripts_engine.models import Run, Script, Trigger

MAX_OFFERED_REQUESTS = 20
# Only the newest runs are searched: a script may have a million runs from other triggers.
SEARCHED_RUNS = 200
MAX_TEXT_BYTES = 200_000
_PREVIEW_BYTES = 120
_PREVIEW_CHARACTERS = 40


def recent_requests(script: Script, *, failed_only: bool = False) -> list[dict[str, str]]:
    """The newest requests that hooks received: ``[{run, title}]``."""
    runs = script.runs.failed() if failed_only else script.runs.all()
    newest = (
        runs.select_related("hook")
        # The script's id, or Django reads it for each run.
        .only("script", "trigger", "started_at", "request_method", "status", "hook__name")
        .order_by("-id")[:SEARCHED_RUNS]
    )
    removed_before = _payloads_removed_before(script)
    offered = [
        run for run in newest if run.trigger == Trigger.HOOK and run.started_at > removed_before
    ][:MAX_OFFERED_REQUESTS]
    previews = _previews(script, offered)
    return [
        {"run": str(run.pk), "title": _title(run, previews[run.pk])}
        for run in offered
        if run.pk in previews
    ]


def payload_of(run: Run) -> dict[str, Any]:
    """A run's request for Try it; ``body`` is ``None`` if a text area cannot hold it."""
    payload = run.payload_run()
    body = b"" if payload is None else bytes(payload.request_body)
    return {
        "run": str(run.pk),
        "title": _title(run, _preview(body[:_PREVIEW_BYTES])),
        "method": run.request_method,
        "query": run.request_query,
        "headers": headers_as_text(run, without=REDACTED),
        "body": _text(body),
        "size": len(body),
    }


def headers_as_text(run: Run, *, without: str) -> str:
    """The recorded headers, one per line, except those whose value is ``without``."""
    return "\n".join(f"{name}: {value}" for name, value in run.request_headers if value != without)


def _title(run: Run, preview: str) -> str:
    parts = [
        f"{run.started_at:%b %d, %H:%M:%S} UTC",
        run.get_status_display(),
        run.request_method,
        preview or "empty body",
    ]
    return " · ".join([*parts, str(run.hook)] if run.hook else parts)


def _previews(script: Script, runs: list[Run]) -> dict[Any, str]:
    """The beginning of each body by run, from the offered runs alone: bodies may be large.

    Without later attempts, whose payload is that of the first one.
    """
    firsts = script.runs.filter(pk__in=[run.pk for run in runs], first_run__isnull=True)
    of_bodies = firsts.values_list(
        "pk", Substr("request_body", 1, _PREVIEW_BYTES, output_field=BinaryField())
    )
    return {pk: _preview(bytes(start or b"")) for pk, start in of_bodies}


def _preview(start: bytes) -> str:
    decoded = start.decode("utf-8", "replace")
    # The cut may divide one character.
    if "\0" in decoded or decoded.count("\N{REPLACEMENT CHARACTER}") > 1:
        return "binary"
    text = " ".join(decoded.split())
    shown = "".join(character for character in text if character.isprintable())
    is_cut = len(shown) > _PREVIEW_CHARACTERS or len(start) == _PREVIEW_BYTES
    return shown[:_PREVIEW_CHARACTERS] + ("…" if is_cut else "")


def _payloads_removed_before(script: Script) -> datetime:
    """Avoids reading ``payload_removed_at`` of each run: SQLite would read the payloads, too."""
    storage = RunStorage.objects.filter(pk=script.organisation_id).first()
    return (storage and storage.removed_before) or datetime.min.replace(tzinfo=UTC)


def _text(body: bytes) -> str | None:
    if len(body) > MAX_TEXT_BYTES or b"\0" in body or b"\r" in body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
