"""Panels: what belongs to an organisation, a script or a hook, on its page."""

from collections.abc import Iterable

from django.http import HttpRequest
from django.utils.formats import date_format

from accounts.models import Organisation
from core.admin.confirmation import NEXT
from core.admin.display import DANGER, SUCCESS, label
from core.admin.links import action_of, button, buttons, link, link_to, list_of, page_of
from core.admin.panels import Link, Panel, panel_of
from scripts_engine.admin.refusals import REASONS
from scripts_engine.admin.runs.presentation import trigger_of
from scripts_engine.admin.runs.statuses import status_label
from scripts_engine.models import Hook, RefusedCall, Run, Schedule, Script, ScriptVersion

_LATEST = 10


@panel_of(Organisation)
def scripts_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    scripts = Script.objects.of_organisation(organisation)[:_LATEST]
    return Panel(
        title="Scripts",
        headers=("Name", "State", "Changed"),
        rows=[
            (link_to(script), _enabled(script.is_enabled), script.updated_at) for script in scripts
        ],
        empty="No scripts. Create one, then create a hook that runs it.",
        links=(
            Link("All scripts", list_of(Script, organisation__id__exact=organisation.pk)),
            Link("Add script", list_of(Script, "add", organisation=organisation.pk)),
        ),
    )


@panel_of(Script)
def hooks_of_script(request: HttpRequest, script: Script) -> Panel:
    return Panel(
        title="Hooks",
        headers=("Name", "HookID", "State", "Created", "Actions"),
        rows=[
            (
                link_to(hook),
                hook.pk,
                _enabled(hook.is_enabled),
                hook.created_at,
                buttons(
                    button(action_of(hook, "rotate"), "Rotate token", of=f"of {hook}"),
                    _switch(hook, back_to=page_of(script)),
                ),
            )
            for hook in script.hooks.filter(deleted_at__isnull=True)
        ],
        empty="No hooks. Create one and give its URL to the caller.",
        links=(Link("Create hook", list_of(Hook, "add", script=script.pk)),),
    )


@panel_of(Script)
def schedules_of_script(request: HttpRequest, script: Script) -> Panel:
    return Panel(
        title="Schedules",
        headers=("Name", "When", "Next tick (UTC)", "State"),
        rows=[
            (
                link_to(schedule),
                f"{schedule.cron} ({schedule.time_zone})",
                schedule.next_tick_at or "None",
                _enabled(schedule.is_enabled),
            )
            for schedule in script.schedules.all()
        ],
        empty="No schedules. Add one to run the script at set times.",
        links=(Link("Add schedule", list_of(Schedule, "add", script=script.pk)),),
    )


@panel_of(Script)
def runs_of_script(request: HttpRequest, script: Script) -> Panel:
    return _runs(
        script.runs.select_related("hook")[:_LATEST],
        empty="No recorded runs. A run appears here when a hook is called or the script is tried.",
        all_runs=list_of(Run, script__id__exact=script.pk),
    )


@panel_of(Hook)
def runs_of_hook(request: HttpRequest, hook: Hook) -> Panel:
    return _runs(
        hook.runs.select_related("hook")[:_LATEST],
        empty="No recorded calls. The call token was shown when it was created.",
        all_runs=list_of(Run, hook__id__exact=hook.pk),
    )


@panel_of(Hook)
def refused_calls_of_hook(request: HttpRequest, hook: Hook) -> Panel:
    return _refused_calls(
        hook.refused_calls.select_related("hook")[:_LATEST],
        empty="No call was refused.",
        all_calls=list_of(RefusedCall, hook__id__exact=hook.pk),
    )


@panel_of(Script)
def refused_calls_of_script(request: HttpRequest, script: Script) -> Panel:
    return _refused_calls(
        script.refused_calls.select_related("hook")[:_LATEST],
        empty="No call was refused, not even one with a token that no hook has.",
        all_calls=list_of(RefusedCall, script__id__exact=script.pk),
    )


@panel_of(Script)
def versions_of_script(request: HttpRequest, script: Script) -> Panel:
    versions = script.versions.select_related("created_by", "created_with").prefetch_related(
        "created_by__memberships"
    )[:_LATEST]
    return Panel(
        title="Versions",
        headers=("Version", "Saved", "By", "Actions"),
        rows=[
            (
                link(page_of(version), _number(version, script)),
                version.created_at,
                version.author or "",
                buttons(
                    button(page_of(version), "Changes", of=f"of version {version.number}"),
                    _restore(version, script),
                ),
            )
            for version in versions
        ],
        empty="No versions.",
        links=(Link("All versions", list_of(ScriptVersion, script__id__exact=script.pk)),),
    )


def _runs(runs: Iterable[Run], *, empty: str, all_runs: str) -> Panel:
    return Panel(
        title="Latest runs",
        headers=("Started", "Outcome", "Response", "Duration", "Trigger"),
        rows=[
            (
                link(page_of(run), date_format(run.started_at, "DATETIME_FORMAT")),
                status_label(run.status),
                run.response_status,
                f"{run.duration_ms:.1f} ms" if run.has_run else "",
                trigger_of(run),
            )
            for run in runs
        ],
        empty=empty,
        links=(Link("All runs", all_runs),),
    )


def _refused_calls(calls: Iterable[RefusedCall], *, empty: str, all_calls: str) -> Panel:
    return Panel(
        title="Refused calls",
        headers=("Came", "Reason", "Hook", "From"),
        rows=[
            (
                link(page_of(call), date_format(call.at, "DATETIME_FORMAT")),
                REASONS[call.reason],
                "" if call.hook is None else call.hook,
                call.client_address or "",
            )
            for call in calls
        ],
        empty=empty,
        links=(Link("All refused calls", all_calls),),
    )


def _number(version: ScriptVersion, script: Script) -> str:
    is_current = version.pk == script.current_version_id
    return f"{version.number} (current)" if is_current else str(version.number)


def _switch(hook: Hook, *, back_to: str) -> str:
    name = "disable" if hook.is_enabled else "enable"
    address = action_of(hook, name, **{NEXT: back_to})
    return button(address, name.capitalize(), of=str(hook))


def _restore(version: ScriptVersion, script: Script) -> str:
    if version.pk == script.current_version_id:
        return ""
    return button(action_of(version, "restore"), "Restore", of=f"version {version.number}")


def _enabled(is_enabled: bool) -> str:
    return label("Enabled", SUCCESS) if is_enabled else label("Disabled", DANGER)
