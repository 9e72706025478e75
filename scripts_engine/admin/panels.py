"""Panels: what belongs to an organisation or a script, on its page."""

from collections.abc import Iterable
from typing import Any

from django.db.models import F, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string

from accounts.admin.reach import has_scope, person
from accounts.models import Organisation
from accounts.scopes import Scope
from core.admin.bars import bars_of
from core.admin.display import DANGER, SUCCESS, WARNING, label, size_text
from core.admin.links import action_of, button, buttons, link, link_to, list_of, page_of
from core.admin.panels import Link, Panel, panel_of
from core.admin.times import relative
from scripts_engine.admin.runs.presentation import status_label, trigger_of
from scripts_engine.callers import name_triggers
from scripts_engine.models import DailyUsage, Release, RequiredLibrary, Run, Script, ScriptVersion
from scripts_engine.releases.live import releases_putting_live
from scripts_engine.runs.spec import Author, draft_owner
from scripts_engine.usage import KEPT_DAYS, DayOfUsage, by_day

LATEST = 10


@panel_of(Organisation, scope=Scope.READ_SCRIPTS)
def scripts_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    scripts = Script.objects.of_organisation(organisation)[:LATEST]
    return Panel(
        title="Scripts",
        headers=("Name", "State", "Changed"),
        rows=[
            (link_to(script), enabled_label(script.is_enabled), script.updated_at)
            for script in scripts
        ],
        empty="No scripts. Create one, then create a hook that runs it.",
        links=(
            Link("All scripts", list_of(Script, organisation__id__exact=organisation.pk)),
            Link(
                "Add script",
                list_of(Script, "add", organisation=organisation.pk),
                Scope.PUBLISH,
            ),
        ),
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=3)
def runs_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    return latest_runs(
        script.runs.all()[:LATEST],
        empty="No recorded runs. A run appears here when a hook is called or the script is tried.",
        all_runs=list_of(Run, script__id__exact=script.pk),
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=5)
def drafts_of_script(request: HttpRequest, script: Script) -> Panel | None:
    may_publish = has_scope(request, Scope.PUBLISH, script)
    own = draft_owner(Author(user=person(request)))
    others = script.versions.drafts().exclude(draft_of=own)
    drafts = list(_with_authors(others).select_related("base"))
    if not drafts:
        return None
    return Panel(
        title="Drafts of others",
        headers=("By", "Saved", "Begun on", "Actions"),
        rows=[
            (
                draft.author,
                draft.created_at,
                "" if draft.base is None else f"Version {draft.base.number}",
                buttons(
                    button(page_of(draft), "Look at it", of=f"of {draft.author}"),
                    button(
                        action_of(draft, "publish"), "Publish", of=f"the draft of {draft.author}"
                    )
                    if may_publish
                    else "",
                ),
            )
            for draft in drafts
        ],
        empty="",
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=6)
def versions_of_script(request: HttpRequest, script: Script) -> Panel:
    may_publish = has_scope(request, Scope.PUBLISH, script)
    listed = script.versions.to_list().filter(draft_of="")
    versions = list(_with_authors(listed)[:LATEST])
    releases = releases_putting_live([version.pk for version in versions])
    return Panel(
        title="Versions",
        headers=("Version", "Saved", "By", "Release", "Actions"),
        rows=[
            (
                link(page_of(version), _number(version, script)),
                version.created_at,
                version.author,
                released_in(releases.get(version.pk)),
                buttons(
                    button(page_of(version), "Changes", of=f"of version {version.number}"),
                    _restore(version, script) if may_publish else "",
                ),
            )
            for version in versions
        ],
        empty="No versions.",
        links=(
            Link("All versions", list_of(ScriptVersion, script__id__exact=script.pk)),
            Link("Releases", list_of(Release, script=script.pk)),
        ),
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=7)
def libraries_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.current_version is None:
        return None
    required = script.current_version.requirements.select_related(
        "library_version__script__current_version"
    )
    rows = [
        (
            link_to(each.library_version.script),
            each.library_version.number,
            _newer(each.library_version),
        )
        for each in required.order_by("name")
    ]
    if not rows:
        return None
    return Panel(
        title="Requires",
        headers=("Library", "Version", "Newer version"),
        rows=rows,
        empty="",
    )


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=8)
def dependents_of_library(request: HttpRequest, script: Script) -> Panel | None:
    if not script.is_library:
        return None
    dependents = RequiredLibrary.objects.filter(
        library_version__script=script,
        version__script__current_version=F("version"),
        version__script__deleted_at=None,
    ).select_related("version__script", "library_version")
    is_outdated = dependents.exclude(library_version=script.current_version_id).exists()
    return Panel(
        title="Required by",
        headers=("Script", "Requires version", "State"),
        rows=[
            (
                link_to(each.version.script),
                each.library_version.number,
                label("Current", SUCCESS)
                if each.library_version_id == script.current_version_id
                else label("Older version", WARNING),
            )
            for each in dependents.order_by("version__script__name_key")
        ],
        links=(
            [Link("Update dependents", action_of(live, "update_dependents"), Scope.PUBLISH)]
            if (live := script.current_version) is not None and is_outdated
            else []
        ),
        empty=f'Nothing requires it yet. A script gets it with require("{script.name}").',
    )


def _publish(draft: ScriptVersion) -> str:
    return button(action_of(draft, "publish"), "Publish", of=f"the draft of {draft.author}")


def _newer(required: ScriptVersion) -> str:
    live = required.script.current_version
    if live is None or live.pk == required.pk:
        return ""
    return f"Version {live.number}"


def _with_authors(versions: Any) -> Any:
    rows = versions.select_related("created_by", "created_with")
    return rows.prefetch_related("created_by__memberships")


def released_in(release: Release | None) -> str:
    return "" if release is None else link(page_of(release), release)


def latest_runs(runs: Iterable[Run], *, empty: str, all_runs: str) -> Panel:
    """A panel of these runs, for the page of what they belong to."""
    return Panel(
        title="Latest runs",
        headers=("Started", "Outcome", "Response", "Duration", "Trigger"),
        rows=[
            (
                link(page_of(run), relative(run.started_at)),
                status_label(run.status),
                run.response_status,
                f"{run.duration_ms:.1f} ms" if run.has_run else "",
                trigger_of(run, trigger),
            )
            for run, trigger in name_triggers(list(runs))
        ],
        empty=empty,
        links=(Link("All runs", all_runs),),
    )


def _number(version: ScriptVersion, script: Script) -> str:
    is_current = version.pk == script.current_version_id
    return f"{version.number} (live)" if is_current else str(version.number)


def _restore(version: ScriptVersion, script: Script) -> str:
    if version.pk == script.current_version_id:
        return ""
    return button(action_of(version, "restore"), "Restore", of=f"version {version.number}")


def enabled_label(is_enabled: bool) -> str:
    """The state of a script, a hook or a schedule."""
    return label("Enabled", SUCCESS) if is_enabled else label("Disabled", DANGER)


@panel_of(Organisation, scope=Scope.READ_SCRIPTS, place=-2)
def usage_of_organisation(request: HttpRequest, organisation: Organisation) -> Panel:
    return usage_panel(DailyUsage.objects.of_organisation(organisation))


@panel_of(Script, scope=Scope.READ_SCRIPTS, place=2)
def usage_of_script(request: HttpRequest, script: Script) -> Panel | None:
    if script.is_library:
        return None
    return usage_panel(DailyUsage.objects.filter(script_id=script.pk))


def usage_panel(rows: QuerySet[DailyUsage]) -> Panel:
    """Usage of 90 days as a picture. The hook's page, of an app above, has one too."""
    days = by_day(rows)
    calls, failures = sum(day.calls for day in days), sum(day.failures for day in days)
    chart = render_to_string(
        "admin/parts/usage.html",
        {
            "bars": bars_of([_counts(day) for day in days], [_title(day) for day in days]),
            "label": f"Calls by day in the last {KEPT_DAYS} days: {calls:,}, {failures:,} failed",
            "calls": calls,
            "failures": failures,
            "size": size_text(sum(day.bytes for day in days)),
            "cpu_seconds": sum(day.cpu_seconds for day in days),
            "since": days[0].day,
        },
    )
    return Panel(
        title="Usage",
        headers=(),
        rows=(),
        empty=f"No calls in {KEPT_DAYS} days. They are counted within a few minutes.",
        chart=chart if calls or failures else "",
    )


def _counts(day: DayOfUsage) -> dict[str, int]:
    # The attempts at a call may end on several days.
    return {"accepted": max(0, day.calls - day.failures), "failed": day.failures}


def _title(day: DayOfUsage) -> str:
    return f"{day.day}: {day.calls:,} calls, {day.failures:,} failed"
