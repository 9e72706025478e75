"""The pages of scripts: list, editor with Try it, delete."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.db.models import Count, Exists, Model, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.contrib.filters.admin import BooleanRadioFilter

from accounts.admin.reach import person
from core.admin.confirmation import Question
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import list_of
from core.http.origin import origin_of
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.runs.statuses import status_label
from scripts_engine.admin.scripts.form import FIRST_SOURCE, ScriptForm
from scripts_engine.admin.scripts.lua_reference import reference
from scripts_engine.admin.scripts.starters import starters
from scripts_engine.admin.scripts.try_form import METHODS
from scripts_engine.admin.scripts.try_it import TryItPages
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import delete_script
from scripts_engine.models import Hook, Run, Script

_DELETE = Question(
    title="Delete script",
    consequences=(
        "The script and its hooks stop immediately: calls return 404. "
        "Its runs stay readable. This cannot be undone."
    ),
    button="Delete",
)


@admin.register(Script)
class ScriptAdmin(TryItPages, DeletedByFlowModelAdmin):
    empty_state = EmptyState(
        "A script is a Lua program that runs when one of its hooks is called.",
        "Add script",
        "admin:scripts_engine_script_add",
    )
    labels = {"timeout_seconds": "Time limit (seconds)"}
    help_texts = {
        "organisation": "The script runs with the secrets and stored values of this organisation.",
        "name": "Shown in lists and runs, for example “shop orders”. Not part of the URL.",
        "timeout_seconds": (
            "Including http calls. Default 10, maximum 25. Longer runs are stopped; the caller "
            "gets 504."
        ),
        "is_enabled": "When off, its hooks return 404. You can still try the script here.",
    }
    form = ScriptForm
    change_form_template = "admin/script.html"
    change_form_outer_after_template = "admin/script_below.html"
    compressed_fields = False
    list_display = ("name", "organisation", "is_enabled", "hook_count", "last_run", "updated_at")
    list_filter = (
        ("organisation", ScopedAutocompleteFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    list_select_related = ("organisation",)
    sortable_by = ("name", "organisation", "is_enabled", "updated_at")
    ordering = ("-created_at", "-id")
    search_fields = ("name",)
    search_help_text = "Name"
    autocomplete_fields = ("organisation",)
    warn_unsaved_form = True
    actions_detail = ("issue_hook",)
    delete_question = _DELETE

    def delete_by_flow(self, request: HttpRequest, obj: Script) -> None:
        delete_script(obj, origin=origin_of(request))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        scripts: Any = super().get_queryset(request)
        runs = Run.objects.of_saved_versions().filter(script=OuterRef("pk"))
        last_run = runs.order_by("-id").values("status")
        hooks = Hook.objects.filter(script=OuterRef("pk"), deleted_at__isnull=True).order_by()
        hook_count = hooks.values("script").annotate(count=Count("pk")).values("count")
        rows: QuerySet[Any] = (
            scripts.existing()
            .select_related("organisation", "current_version")
            .annotate(
                hooks_in_use=Coalesce(Subquery(hook_count), 0),
                last_status=Subquery(last_run[:1]),
                has_drafts=Exists(Run.objects.filter(script=OuterRef("pk"))),
            )
        )
        return rows

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        form.author = Author(user=person(request))
        form.origin = origin_of(request)
        return form

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fields = (("name", "timeout_seconds", "is_enabled"), "source")
        return ((None, {"fields": ("organisation", *fields) if obj is None else fields}),)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        context |= {
            "reference": reference(),
            # A script that has a source needs no starter.
            "starters": [] if isinstance(obj, Script) and obj.source else starters(),
            "first_source": FIRST_SOURCE,
            "methods": METHODS,
            "max_body_bytes": settings.HOOK_MAX_BODY_BYTES,
            "show_save_and_add_another": False,
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    @display(description="Hooks")
    def hook_count(self, script: Any) -> int:
        count: int = script.hooks_in_use
        return count

    @display(description="Last run")
    def last_run(self, script: Any) -> str:
        if script.last_status:
            return status_label(script.last_status)
        return "Only drafts tried" if script.has_drafts else "None recorded"

    def save_model(
        self, request: HttpRequest, obj: Script, form: forms.ModelForm[Script], change: bool
    ) -> None:
        """Does nothing: the form's flow has already saved the script."""

    @action(description="Create hook", icon="webhook")
    def issue_hook(self, request: HttpRequest, object_id: str) -> HttpResponse:
        script = self.get_or_404(request, object_id)
        return redirect(list_of(Hook, "add", script=script.pk))
