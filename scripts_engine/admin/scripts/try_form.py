"""Input of Try it: a source with a custom request, or with the request of a recent run."""

import re
import uuid
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from core.plain_text import is_encodable
from scripts_engine.event import Event
from scripts_engine.flows.source import validate_source_text, with_lua_line_ends
from scripts_engine.models import Run, Script

METHODS = ("POST", "GET")
# RFC 9110, sections 5.1 and 5.5: a token, and the characters of a field value.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_QUERY = re.compile(r"[\x21-\x7e]*")


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
    value = value.strip(" \t")
    if not colon or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
        raise ValidationError(f"“{line[:60]}” is not a valid header. Use Name: value")
    return name, value
