"""Input of Try it: a source with a custom request, or with the request of a recent run."""

import uuid
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import BinaryField
from django.db.models.functions import Substr

from core.http.redaction import REDACTED
from core.plain_text import is_encodable
from scripts_engine.callers import Caller, callers_of
from scripts_engine.flows.source import validate_source_text, with_lua_line_ends
from scripts_engine.models import Run, RunStorage, Script, Trigger
from scripts_engine.runs.spec import Event, clean_header, clean_query

METHODS = ("POST", "GET")

MAX_OFFERED_REQUESTS = 20
# Only the newest runs are searched: a script may have a million runs from other triggers.
SEARCHED_RUNS = 200
MAX_TEXT_BYTES = 200_000
_PREVIEW_BYTES = 120
_PREVIEW_CHARACTERS = 40


class TryForm(forms.Form):
    """A request to try. ``body_of`` names a run of the script whose payload replaces ``body``:
    bytes that a text area cannot hold. A script that is not saved has no runs.
    """

    source = forms.CharField(required=False, strip=False, validators=[validate_source_text])
    method = forms.ChoiceField(choices=[(method, method) for method in METHODS])
    query = forms.CharField(required=False)
    headers = forms.CharField(required=False)
    body = forms.CharField(required=False, strip=False)
    body_of = forms.UUIDField(required=False)

    def __init__(self, data: dict[str, Any], script: Script | None) -> None:
        super().__init__(data)
        self._script = script

    def event(self, client_address: str) -> Event:
        """The request as an event. Valid forms only."""
        data = self.cleaned_data
        return Event(data["method"], data["query"], data["headers"], data["body"], client_address)

    def clean_source(self) -> str:
        return with_lua_line_ends(self.cleaned_data["source"])

    def clean_query(self) -> str:
        return clean_query(self.cleaned_data["query"])

    def clean_headers(self) -> tuple[tuple[str, str], ...]:
        # splitlines() would also split at characters that a header value may contain.
        lines = self.cleaned_data["headers"].replace("\r\n", "\n").split("\n")
        return tuple(_header(line) for line in lines if line.strip())

    def clean(self) -> dict[str, Any]:
        """Replaces the body with the bytes to send."""
        data = super().clean() or self.cleaned_data
        if data.get("body_of"):
            run = self._run_with_payload(data["body_of"])
            if run is None:
                raise ValidationError({"body_of": "The payload of this run no longer exists."})
            data["body"] = bytes(run.request_body)
        elif "body" in data:
            data["body"] = self._encoded(data["body"])
        return data

    def _run_with_payload(self, run_id: uuid.UUID) -> Run | None:
        if self._script is None:
            return None
        columns = ("organisation", "first_run", "payload_removed_at", "request_body")
        run = self._script.runs.filter(pk=run_id).only(*columns).first()
        payload = None if run is None else run.payload_run()
        return None if payload is None or payload.payload_removed_at is not None else payload

    @staticmethod
    def _encoded(body: str) -> bytes:
        if not is_encodable(body):
            raise ValidationError({"body": "The body contains invalid characters. Remove them."})
        encoded = body.encode()
        if len(encoded) > settings.HOOK_MAX_BODY_BYTES:
            raise ValidationError(
                {
                    "body": f"The maximum payload is {settings.HOOK_MAX_BODY_BYTES} bytes; "
                    f"this one has {len(encoded)}."
                }
            )
        return encoded


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    try:
        if colon:
            return clean_header(name, value)
    except ValidationError:
        pass
    raise ValidationError(f"“{line[:60]}” is not a valid header. Use Name: value")


def recent_requests(script: Script, *, failed_only: bool = False) -> list[dict[str, str]]:
    """The newest requests that hooks received: ``[{run, title}]``."""
    runs = script.runs.failed() if failed_only else script.runs.all()
    newest = (
        # The script's id, or Django reads it for each run.
        runs.only(
            "script", "trigger", "started_at", "request_method", "status", "hook_id"
        ).order_by("-id")[:SEARCHED_RUNS]
    )
    removed_before = _payloads_removed_before(script)
    offered = [
        run for run in newest if run.trigger == Trigger.HOOK and run.started_at > removed_before
    ][:MAX_OFFERED_REQUESTS]
    previews = _previews(script, offered)
    callers = callers_of(offered)
    return [
        {"run": str(run.pk), "title": _title(run, previews[run.pk], callers.get(run.pk))}
        for run in offered
        if run.pk in previews
    ]


def payload_of(run: Run) -> dict[str, Any]:
    """A run's request for Try it; ``body`` is ``None`` if a text area cannot hold it."""
    payload = run.payload_run()
    body = b"" if payload is None else bytes(payload.request_body)
    return {
        "run": str(run.pk),
        "title": _title(run, _preview(body[:_PREVIEW_BYTES]), callers_of([run]).get(run.pk)),
        "method": run.request_method,
        "query": run.request_query,
        "headers": headers_as_text(run, without=REDACTED),
        "body": _text(body),
        "size": len(body),
    }


def headers_as_text(run: Run, *, without: str) -> str:
    """The recorded headers, one per line, except those whose value is ``without``."""
    return "\n".join(f"{name}: {value}" for name, value in run.request_headers if value != without)


def _title(run: Run, preview: str, caller: Caller | None) -> str:
    parts = [
        f"{run.started_at:%b %d, %H:%M:%S} UTC",
        run.get_status_display(),
        run.request_method,
        preview or "empty body",
    ]
    return " · ".join(parts if caller is None else [*parts, caller.name])


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
