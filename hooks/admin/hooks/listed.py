"""The list of hooks: who calls each, its last call, and its calls of 24 hours."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.views import ChangeList

from accounts.admin.tenancy import TenantModelAdmin
from core.admin.display import PLAIN, WARNING, display, label
from core.database.ids import first_id_at
from hooks.models import Hook, RefusedCall
from hooks.rule_values import preset_of
from scripts_engine.admin.activity import ActivityChangeList, day_cell, newest_cell
from scripts_engine.models import Run
from scripts_engine.recent_runs import activity_of


class HookChangeList(ActivityChangeList):
    """Hooks need attention whose calls failed or were refused."""

    def in_need(self, since: datetime) -> Q:
        failed = Run.objects.called_since(since).failed().counted().filter(hook_id=OuterRef("pk"))
        refused = RefusedCall.objects.filter(hook=OuterRef("pk"), pk__gte=first_id_at(since))
        return Q(Exists(failed)) | Q(Exists(refused))

    def read(self, rows: list[Any], since: datetime) -> None:
        activities = activity_of(rows, "hook_id", since)
        recent = RefusedCall.objects.filter(hook__in=rows, pk__gte=first_id_at(since)).order_by()
        refused = dict(recent.values_list("hook_id").annotate(count=Count("pk")))
        for hook in rows:
            hook.activity = activities[hook.pk]
            hook.refused_in_day = refused.get(hook.pk, 0)


class ListedHooks(TenantModelAdmin):
    """Adds the columns of the list."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return HookChangeList

    @display(description="Hook")
    def named(self, hook: Hook) -> SafeString:
        preset = preset_of(hook)
        badge = label("No sender", WARNING) if preset is None else label(preset.title, PLAIN)
        return format_html('<span class="mh-cell">{} {}</span>', hook.name, badge)

    @display(description="Last call")
    def last_call(self, hook: Any) -> SafeString | str:
        return newest_cell(hook.activity.newest, "No recorded calls")

    @display(description="Calls of 24 hours")
    def calls_of_day(self, hook: Any) -> SafeString:
        return day_cell(hook.activity, hook.refused_in_day)
