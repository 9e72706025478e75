"""Releases: what went live together, when and by whom; with differences, and undone in a click."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import DropdownFilter
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import RoleNeededError, is_superuser, maker_of, organisation_ids_with
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.scopes import MissingScopeError, Scope, missing
from core.admin.confirmation import is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import PeriodFilter, ScopedAutocompleteFilter
from core.admin.flow_forms import add_errors
from core.admin.links import link, page_of
from core.admin.times import relative
from core.database.ids import parse_uuid
from core.errors import ConflictError
from core.http.origin import origin_of
from core.names import MAX_NAME_CHARACTERS
from scripts_engine.admin.releases.issued import IssuedPages
from scripts_engine.admin.releases.promote import PromotePages
from scripts_engine.admin.releases.words import (
    MAX_SHOWN,
    NAMED_IN_LIST,
    NoteForm,
    changes_of,
    in_words,
    undone_changes,
)
from scripts_engine.models import Release, ReleaseChange, Script
from scripts_engine.releases.undo import (
    Item,
    names_taken,
    preview_undo,
    scopes_of,
    undo_release,
)

# A list box holds no more.
MAX_OFFERED = 500


class LateChoices(DropdownFilter):
    """Reads its choices when the list is shown, after the parameters of the address were judged."""

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self._asked = (request, model_admin)
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        raise NotImplementedError

    def has_output(self) -> bool:
        # A link from a deleted script has a filter too.
        return True

    def choices(self, changelist: Any) -> Any:
        self.lookup_choices = self.offered(*self._asked)
        return super().choices(changelist)


class ActorFilter(LateChoices):
    """Filters by who released, as the list names them."""

    title = "person or key"
    parameter_name = "by"

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by("actor_label")
        labels = rows.values_list("actor_label", flat=True).distinct()[:MAX_OFFERED]
        return [(label, label) for label in labels]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        label = self.value()
        return queryset.filter(actor_label=label) if label else queryset


class ChangedScriptFilter(LateChoices):
    """Filters by a script that was changed, or whose hooks or schedules were; also a deleted one.

    Only releases within reach are filtered, so ids of other organisations find nothing.
    """

    title = "script"
    parameter_name = "script"

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        scripts = model_admin.rows_to_choose(request, Script).order_by("name")
        named = scripts.values_list("pk", "name")[:MAX_OFFERED]
        return [(str(script_id), name) for script_id, name in named]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        script_id = parse_uuid(value)
        return queryset.none() if script_id is None else queryset.changing_script(script_id)


class ReleaseTimeFilter(PeriodFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "time (UTC)"


class UndoForm(NoteForm):
    force = forms.BooleanField(
        label="Undo it anyway. What has changed since, named above, is lost.",
        error_messages={"required": "Tick this to lose what has changed since."},
    )

    name = forms.CharField(
        max_length=MAX_NAME_CHARACTERS,
        widget=UnfoldAdminTextInputWidget,
        help_text="What comes back needs another name: its own is taken by now.",
    )

    def __init__(self, *args: Any, has_conflicts: bool, is_name_taken: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not has_conflicts:
            del self.fields["force"]
        if not is_name_taken:
            del self.fields["name"]


@admin.register(Release)
class ReleaseAdmin(PromotePages, IssuedPages, ReadOnlyTenantModelAdmin):
    """Read-only; a release is undone by another one."""

    empty_state = EmptyState(
        "Every change of a script, hook or schedule is a release: it tells who put what live, and "
        "can be undone. Add a script to get the first.",
        "Add script",
        "admin:scripts_engine_script_add",
    )
    view_scope = Scope.READ_SCRIPTS
    page_scopes = {
        # And the scope of each object that it would change.
        "undo": Scope.READ_SCRIPTS,
        "promote": Scope.PUBLISH,
        "plan": Scope.PUBLISH,
        "issued": Scope.WRITE_HOOKS,
    }
    # Applying a plan may make call tokens.
    proved_pages = frozenset({"plan", "issued"})
    change_form_template = "admin/release.html"
    list_display = ("shown_number", "shown_time", "shown_actor", "shown_changes", "note")
    list_filter = (
        ActorFilter,
        ChangedScriptFilter,
        ("at", ReleaseTimeFilter),
    )
    list_filter_submit = True
    list_select_related = ("organisation", "undoes")
    ordering = ("-id",)
    actions = None
    actions_list = ("promote",)
    actions_detail = ("undo",)
    fields = readonly_fields = ("number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        named = ReleaseChange.objects.filter(place__lt=NAMED_IN_LIST).defer("before", "after")
        changes = ReleaseChange.objects.filter(release=OuterRef("pk")).order_by()
        count = changes.values("release").annotate(count=Count("pk")).values("count")
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.prefetch_related(
            Prefetch("changes", named.order_by("place"), to_attr="named_changes")
        ).annotate(change_count=Subquery(count))

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Adds the organisation where the list may show several."""
        several = self._shows_several(request)
        return (*self.list_display, "organisation") if several else self.list_display

    def _shows_several(self, request: HttpRequest) -> bool:
        visible = organisation_ids_with(request, self.view_scope)
        return is_superuser(request) or len(visible) > 1

    def get_list_filter(self, request: HttpRequest) -> tuple[Any, ...]:
        of_organisation = ("organisation", ScopedAutocompleteFilter)
        return (
            (of_organisation, *self.list_filter)
            if self._shows_several(request)
            else self.list_filter
        )

    @display(description="Release")
    def shown_number(self, release: Release) -> str:
        return str(release)

    @display(description="When")
    def shown_time(self, release: Release) -> SafeString:
        return relative(release.at)

    @display(description="By")
    def shown_actor(self, release: Release) -> str:
        return release.actor_label

    @display(description="What changed")
    def shown_changes(self, release: Any) -> SafeString:
        words = in_words(release.named_changes, release.change_count)
        if release.undoes is None:
            return format_html("{}", words)
        undone = link(page_of(release.undoes), release.undoes)
        return format_html("<span>{} (undoes {})</span>", words, undone)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        release = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "title": str(release),
            "release": release,
            "changes": changes_of(release),
            "more_changes": max(0, release.change_count - MAX_SHOWN),
            "undone_by": list(release.undone_by.order_by("-number")),
            "show_history": False,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Offers to undo what is not undone yet, to those who may change all of it."""
        release: Release | None = self.get_object(request, unquote(str(object_id)))
        items = [] if release is None else preview_undo(release)
        if release is None or not items or self._lacking(request, release, items):
            return []
        buttons: list[Any] = super().get_actions_detail(request, object_id)
        return buttons

    def _lacking(self, request: HttpRequest, release: Release, items: list[Item]) -> list[Scope]:
        return missing(maker_of(request, release.organisation).scopes, scopes_of(items))

    @action(description="Undo", icon="undo", variant=ActionVariant.WARNING)
    def undo(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Names what would change and what is lost; undoes after the confirmation."""
        release: Release = self.get_or_404(request, object_id)
        items = preview_undo(release)
        if not items:
            told = f"{release} is undone already: everything is as it was before."
            self.message_user(request, told, messages.INFO)
            return redirect(page_of(release))
        if lacking := self._lacking(request, release, items):
            raise RoleNeededError(*lacking, place=release.organisation)
        conflicts = any(item.has_changed_since for item in items)
        form = UndoForm(
            request.POST if is_confirmed(request) else None,
            has_conflicts=conflicts,
            is_name_taken=bool(names_taken(release.organisation, items)),
        )
        if form.is_valid() and (made := self._undone(request, release, form)) is not None:
            self.log_change(request, release, f"Undone by {str(made).lower()}.")
            told = f"Undid {str(release).lower()}, as {str(made).lower()}."
            self.message_user(request, told, messages.SUCCESS)
            return redirect(page_of(made))
        return self._undo_page(request, release, items, form)

    def _undone(self, request: HttpRequest, release: Release, form: UndoForm) -> Release | None:
        """The new release; ``None`` if the form has the reason why there is none."""
        try:
            return undo_release(
                release,
                held=maker_of(request, release.organisation).scopes,
                force=form.cleaned_data.get("force", False),
                name=form.cleaned_data.get("name", ""),
                note=form.cleaned_data["note"],
                origin=origin_of(request),
            )
        except MissingScopeError as lacking:
            raise RoleNeededError.beyond(lacking, release.organisation) from None
        except ConflictError as conflict:
            form.add_error(None, str(conflict))
        except ValidationError as refusal:
            add_errors(form, refusal)
        return None

    def _undo_page(
        self, request: HttpRequest, release: Release, items: list[Item], form: UndoForm
    ) -> HttpResponse:
        conflicts = [item for item in items if item.has_changed_since]
        return TemplateResponse(
            request,
            "admin/undo_release.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": release,
                "title": f"Undo {str(release).lower()}",
                "release": release,
                "changes": undone_changes(release, items),
                "more_changes": max(0, len(items) - MAX_SHOWN),
                "conflicts": [f"{item.kind.name} “{item.name}”" for item in conflicts[:MAX_SHOWN]],
                "form": form,
            },
        )
