"""Input of Try it: a source with a custom request, or with the request of a recent run."""

import re
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from accounts.models import RunStorage
from core.http.redaction import REDACTED
from core.plain_text import is_encodable
from scripts_engine.event import Event
from scripts_engine.flows.source import validate_source_text, with_lua_line_ends
from scripts_engine.models import Run, Script, Trigger

METHODS = ("POST", "GET")
# RFC 9110, sections 5.1 and 5.5: a token, and the characters of a field value.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_QUERY = re.compile(r"[\x21-\x7e]*")

MAX_OFFERED_REQUESTS = 20
# Only the newest runs are searched: a script may have a million runs from other triggers.
SEARCHED_RUNS = 200
MAX_TEXT_BYTES = 200_000


class TryForm(forms.Form):
    """A request to try. ``body_of`` names a run of the script whose payload replaces ``body``:
    bytes that a text area cannot hold.
    """

    source = forms.CharField(required=False, strip=False, validators=[validate_source_text])
    method = forms.ChoiceField(choices=[(method, method) for method in METHODS])
    query = forms.CharField(required=False)
    headers = forms.CharField(required=False)
    body = forms.CharField(required=False, strip=False)
    body_of = forms.UUIDField(required=False)

    def __init__(self, data: dict[str, Any], script: Script) -> None:
        super().__init__(data)
        self._script = script

    def event(self, client_address: str) -> Event:
        """The request as an event. Valid forms only."""
        data = self.cleaned_data
        return Event(data["method"], data["query"], data["headers"], data["body"], client_address)

    def clean_source(self) -> str:
        return with_lua_line_ends(self.cleaned_data["source"])

    def clean_query(self) -> str:
        query: str = self.cleaned_data["query"].removeprefix("?")
        if not _QUERY.fullmatch(query):
            raise ValidationError("Write the query as in a URL: page=2&q=tea%20pot.")
        return query

    def clean_headers(self) -> tuple[tuple[str, str], ...]:
        # splitlines() would also split at characters that a header value may contain.
        lines = self.cleaned_data["headers"].replace("\r\n", "\n").split("\n")
        return tuple(_header(line) for line in lines if line.strip())

    def clean(self) -> dict[str, Any]:
        """Replaces the body with the bytes to send."""
        data = super().clean() or self.cleaned_data
        if data.get("body_of"):
            run = (
                self._script.runs.filter(pk=data["body_of"])
                .only("request_body", "payload_removed_at")
                .first()
            )
            if run is None or run.payload_removed_at is not None:
                raise ValidationError({"body_of": "The payload of this run no longer exists."})
            data["body"] = bytes(run.request_body)
        elif "body" in data:
            data["body"] = self._encoded(data["body"])
        return data

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
    value = value.strip(" \t")
    if not colon or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ValidationError(f"“{line[:60]}” is not a valid header. Use Name: value")
    return name, value


def headers_as_text(run: Run, *, without: str) -> str:
    """The recorded headers, one per line, except those whose value is ``without``."""
    return "\n".join(f"{name}: {value}" for name, value in run.request_headers if value != without)


def recent_requests(script: Script) -> list[dict[str, Any]]:
    """The newest requests that hooks received, without their bodies."""
    runs = (
        script.runs.select_related("hook")
        .only("trigger", "started_at", "request_method", "status", "hook__name")
        .order_by("-id")[:SEARCHED_RUNS]
    )
    removed_before = _payloads_removed_before(script)
    requests = [
        run for run in runs if run.trigger == Trigger.HOOK and run.started_at > removed_before
    ][:MAX_OFFERED_REQUESTS]
    return [
        {
            "run": str(run.pk),
            "title": f"{run.started_at:%Y-%m-%d %H:%M:%S} {run.request_method}, "
            f"{run.hook}: {run.get_status_display().lower()}",
        }
        for run in requests
    ]


def _payloads_removed_before(script: Script) -> datetime:
    """Avoids reading ``payload_removed_at`` of each run: SQLite would read the payloads, too."""
    storage = RunStorage.objects.filter(pk=script.organisation_id).first()
    return (storage and storage.removed_before) or datetime.min.replace(tzinfo=UTC)


def payload_of(run: Run) -> dict[str, Any]:
    """A run's request for Try it; ``body`` is ``None`` if a text area cannot hold it."""
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
