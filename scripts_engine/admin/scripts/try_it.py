"""JSON endpoints behind the editor and Try it on a script's page."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ValidationError
from django.db import connection
from django.http import Http404, HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.views.decorators.http import require_GET, require_POST

from accounts.admin.reach import organisations_with, person
from accounts.admin.tenancy import TenantModelAdmin
from accounts.models import Organisation
from accounts.rate_limits import windows
from accounts.rate_limits.limiter import hit
from accounts.scopes import Scope
from core.admin.links import page_of
from core.database.ids import parse_uuid
from core.errors import RateLimitedError
from core.http.body import MalformedJson, parse_json_object
from core.http.bulkhead import place_left_to_others
from core.http.origin import client_address
from scripts_engine.admin.panels import runs_of_script
from scripts_engine.admin.runs.bodies import body_of
from scripts_engine.admin.runs.presentation import hint_of_error, logs_of, status_label
from scripts_engine.admin.runs.timeline import timeline_of
from scripts_engine.admin.scripts.try_form import TryForm, payload_of, recent_requests
from scripts_engine.flows.source import SourceError, check_source, warnings_of, with_lua_line_ends
from scripts_engine.libraries import resolve
from scripts_engine.models import Run, Script, Trigger
from scripts_engine.runs.execution import try_new_script, try_script
from scripts_engine.runs.problems import NOT_RUN_ERRORS, why_not_run
from scripts_engine.runs.spec import Author, draft_owner


class TryItPages(TenantModelAdmin):
    """Checks a source, runs it and lists recent requests, within the user's organisations."""

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path(
                "check/",
                wrap(require_POST(self.check_source_view)),
                name="scripts_engine_script_check",
            ),
            path("alive/", wrap(require_POST(alive_view)), name="scripts_engine_script_alive"),
            path(
                "try/",
                wrap(require_POST(self.try_new_view)),
                name="scripts_engine_script_try_new",
            ),
            path(
                "<path:object_id>/try/",
                wrap(require_POST(self.try_view)),
                name="scripts_engine_script_try",
            ),
            path(
                "<path:object_id>/payloads/",
                wrap(require_GET(self.payloads_view)),
                name="scripts_engine_script_payloads",
            ),
            *super().get_urls(),
        ]

    def check_source_view(self, request: HttpRequest) -> JsonResponse:
        """``{organisation, source}`` → ``{line, message}`` of the compile error, or nulls.

        ``warnings`` lists ``{line, message, isNote}`` of a source that compiles.
        """
        data = _json_object(request)
        organisation = _organisation_of(request, data)
        source = with_lua_line_ends(str(data.get("source", "")))
        flaw: dict[str, Any] = {"line": None, "message": None, "warnings": []}
        try:
            check_source(organisation, source, "script")
            resolve(organisation, source, draft_of=draft_owner(Author(user=person(request))))
            flaw["warnings"] = [
                {"line": warning.line, "message": warning.message, "isNote": warning.is_note}
                for warning in warnings_of(organisation, source)
            ]
        except SourceError as error:
            flaw |= {"line": error.line, "message": error.flaw}
        except ValidationError as error:
            flaw |= {"message": " ".join(error.messages)}
        except NOT_RUN_ERRORS as error:
            reason = why_not_run(error)
            return _refused({"source": [reason.text]}, reason.status)
        return JsonResponse(flaw)

    def try_view(self, request: HttpRequest, object_id: str) -> JsonResponse:
        """Runs the source with the given request; 400 with ``errors`` by field if invalid."""
        script: Script = self.get_or_404(request, object_id)
        form = TryForm(_json_object(request), script)
        if not form.is_valid():
            return _refused(form.errors, HTTPStatus.BAD_REQUEST)
        if script.is_library:
            why = "A library does not run by itself. Try a script that requires it."
            return _refused({"__all__": [why]}, HTTPStatus.BAD_REQUEST)
        if form.cleaned_data["source"] != script.source:
            self.require(request, Scope.WRITE_DRAFTS, object_id)
        if form.cleaned_data.get("body_of"):
            self.require(request, Scope.READ_PAYLOADS, object_id)
        try:
            with _place_of_a_run(request):
                run = try_script(
                    script,
                    event=form.event(client_address(request)),
                    author=Author(user=person(request)),
                    trigger=Trigger.ADMIN,
                    source=form.cleaned_data["source"],
                )
        except SourceError as error:
            return _refused({"source": [error.text]}, HTTPStatus.BAD_REQUEST)
        except NOT_RUN_ERRORS as error:
            reason = why_not_run(error)
            return _refused({"__all__": [reason.text]}, reason.status)
        runs = {"panel": runs_of_script(request, script)}
        latest = render_to_string("admin/parts/panel.html", runs, request)
        return JsonResponse(_shown(request, run, is_recorded=True) | {"latestRuns": latest})

    def try_new_view(self, request: HttpRequest) -> JsonResponse:
        """Runs the source of a script that is not saved yet; the run is not recorded."""
        self.require(request, Scope.RUN_SCRIPTS)
        data = _json_object(request)
        if data.get("organisation") == "":
            why = "Choose the organisation first."
            return _refused({"organisation": [why]}, HTTPStatus.BAD_REQUEST)
        organisation = _organisation_of(request, data)
        form = TryForm(data, None)
        if not form.is_valid():
            return _refused(form.errors, HTTPStatus.BAD_REQUEST)
        try:
            by = str(person(request).pk)
            hit([windows.UNRECORDED_RUNS_OF_PERSON], "unrecorded-run", by)
        except RateLimitedError as limited:
            return _too_many_unrecorded(limited)
        try:
            with _place_of_a_run(request):
                run = try_new_script(
                    organisation,
                    event=form.event(client_address(request)),
                    author=Author(user=person(request)),
                    source=form.cleaned_data["source"],
                )
        except SourceError as error:
            return _refused({"source": [error.text]}, HTTPStatus.BAD_REQUEST)
        except NOT_RUN_ERRORS as error:
            reason = why_not_run(error)
            return _refused({"__all__": [reason.text]}, reason.status)
        return JsonResponse(_shown(request, run, is_recorded=False))

    def payloads_view(self, request: HttpRequest, object_id: str) -> JsonResponse:
        """Recent requests, with ``?failed=1`` of failed runs; with ``?run=`` that run's request."""
        script: Script = self.get_or_404(request, object_id)
        if "run" not in request.GET:
            failed_only = request.GET.get("failed") == "1"
            return JsonResponse({"requests": recent_requests(script, failed_only=failed_only)})
        run_id = parse_uuid(request.GET["run"])
        if run_id is None:
            raise Http404
        kept = script.runs.filter(payload_removed_at=None)
        return JsonResponse(payload_of(get_object_or_404(kept, pk=run_id)))


def alive_view(request: HttpRequest) -> JsonResponse:
    """Answers 200 while the login is valid; the editor asks before it submits the form."""
    return JsonResponse({})


@contextmanager
def _place_of_a_run(request: HttpRequest) -> Iterator[None]:
    """Scripts are limited by sandbox slots, not by the bulkhead and deadline of admin pages."""
    connection.lift_deadline()  # type: ignore[attr-defined]
    with place_left_to_others(request):
        yield


def _shown(request: HttpRequest, run: Run, *, is_recorded: bool) -> dict[str, Any]:
    result = {
        "run": run,
        "run_page": page_of(run) if is_recorded else "",
        "status": status_label(run.status),
        "response_body": body_of(run.response_body),
        "logs": logs_of(run),
        "timeline": timeline_of(run),
        "error_hint": hint_of_error(run),
    }
    return {
        "line": run.error_line,
        "message": run.error_message,
        "html": render_to_string("admin/parts/try_result.html", result, request),
    }


def _organisation_of(request: HttpRequest, data: dict[str, Any]) -> Organisation:
    """The organisation named in the request; 404 unless the person writes drafts there."""
    organisation_id = parse_uuid(str(data.get("organisation", "")))
    if organisation_id is None:
        raise Http404
    return get_object_or_404(organisations_with(request, Scope.WRITE_DRAFTS), pk=organisation_id)


def _json_object(request: HttpRequest) -> dict[str, Any]:
    """The request's JSON object; an empty one, which no form accepts, if it is invalid."""
    try:
        return parse_json_object(request.body)
    except MalformedJson:
        return {}


def _too_many_unrecorded(limited: RateLimitedError) -> JsonResponse:
    why = "Too many runs of a script that is not saved. Save the script: recorded runs go on."
    response = _refused({"__all__": [why]}, HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(limited.retry_after_seconds)
    return response


def _refused(errors: Any, status: HTTPStatus) -> JsonResponse:
    return JsonResponse({"errors": errors}, status=status)
