"""The pages of scripts: list, editor with Try it, delete."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.core.exceptions import ValidationError
from django.db.models import Exists, Model, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.safestring import SafeString
from django_ace import AceWidget
from unfold.contrib.filters.admin import BooleanRadioFilter
from unfold.views import ChangeList
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import RoleNeededError, maker_of, person
from accounts.models import Organisation
from accounts.scopes import MissingScopeError, Scope
from core.admin.confirmation import Question
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.flow_forms import add_errors
from core.admin.links import list_of, page_of
from core.errors import ConflictError, NotFoundError
from core.http.origin import origin_of
from scripts_engine.admin.activity import ActivityChangeList, day_cell, newest_cell
from scripts_engine.admin.deletion import DeletedByFlowModelAdmin
from scripts_engine.admin.scripts.drafts import (
    DraftPages,
    conflict_context,
    draft_context,
    shown_by,
)
from scripts_engine.admin.scripts.live import Suspect, live_line, live_of, lives_of, suspect_of
from scripts_engine.admin.scripts.refusals import REFUSALS, words_for
from scripts_engine.admin.scripts.starters import starters
from scripts_engine.admin.scripts.try_form import METHODS
from scripts_engine.admin.scripts.try_it import TryItPages
from scripts_engine.failures import failing_since
from scripts_engine.flows.drafts import draft_by, publish_source
from scripts_engine.flows.scripts import create_script, delete_scripts
from scripts_engine.flows.source import SourceError, with_lua_line_ends
from scripts_engine.lua_reference import editor_entries
from scripts_engine.models import Run, Script, ScriptVersion
from scripts_engine.models.run import FAILURES
from scripts_engine.recent_runs import activity_of
from scripts_engine.releases.live import SUSPECTED_FOR, suspects
from scripts_engine.runs.spec import Author

FIRST_SOURCE = """\
-- The reply is what the script returns. FromJson(body) makes a table of a JSON payload.
local body = params.get("body")
log.info("received", #body, "bytes")
return {received = body}
"""
_AFTER_CONFLICT = "Nothing was published. What you typed is below, and still yours."
FIRST_LIBRARY = """\
-- Scripts get what this returns: local prices = require("prices")
local library = {}

function library.net(gross, rate)
  return gross / (1 + rate)
end

return library
"""
_SCRIPT_HELP = (
    'Lua 5.4. params.get("body") is the payload; the returned value is the reply: nil, '
    "a string, a table (sent as JSON) or Reply{status=…, headers={…}, body=…}. "
    "Ctrl-Enter runs it. "
)
_LIBRARY_HELP = "Lua 5.4. Scripts get the returned value from require. "
_KEYS_HELP = (
    "Ctrl-Space completes, Ctrl-S saves your draft. Saving checks the code. Esc, then Tab leaves "
    "the editor; Enter returns to it."
)
_DELETE = Question(
    title="Delete script",
    consequences=(
        "The script and its hooks stop immediately: calls return 404. "
        "Its runs stay readable. Undoing the release brings it back."
    ),
    button="Delete",
)


class LuaEditor(AceWidget):
    """Ace editor for Lua; a plain text area without JavaScript."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            mode="lua",
            width=None,
            height=None,
            toolbar=False,
            showprintmargin=False,
            tabsize=2,
            # Ace checks for Lua 5.1; the page asks the sandbox's own compiler instead.
            useworker=False,
            basicautocompletion=True,
            liveautocompletion=True,
            **kwargs,
        )

    @property
    def media(self) -> forms.Media:
        files = (
            "django_ace/ace/ext-searchbox.js",
            "django_ace/ace/theme-github_light_default.js",
            "django_ace/ace/theme-github_dark.js",
            "moonhook/lua_warnings.js",
            "moonhook/lua_editor.js",
        )
        widget: forms.Media = super().media
        return widget + forms.Media(js=files, css={"screen": ["moonhook/script.css"]})


class ScriptForm(forms.ModelForm[Script]):
    """A script's settings and its source; publishing a changed source makes it a version.

    The hidden fields are what the page has shown of the script, and of the person's draft.
    """

    seen_draft = forms.CharField(required=False, widget=forms.HiddenInput)
    base = forms.UUIDField(required=False, widget=forms.HiddenInput)
    library = forms.BooleanField(required=False, widget=forms.HiddenInput)
    source = forms.CharField(
        required=False,
        strip=False,
        widget=LuaEditor(
            attrs={
                "class": "source-code",
                "rows": 20,
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
            }
        ),
    )
    note = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        label="Note for the release (optional)",
        help_text="What this change is for. The Releases page shows it.",
    )
    conflict: dict[str, Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Who only reads the script has a form without fields.
        if "source" not in self.fields:
            return
        is_library = self.instance.is_library or bool(self.initial.get("library"))
        if self.instance._state.adding:
            self.initial["source"] = FIRST_LIBRARY if is_library else FIRST_SOURCE
        else:
            draft = self.own_draft
            self.initial["source"] = self.instance.source if draft is None else draft.source
            self.initial.update(shown_by(self.instance, draft))
        help_text = _LIBRARY_HELP if is_library else _SCRIPT_HELP
        self.fields["source"].help_text = help_text + _KEYS_HELP

    @property
    def own_draft(self) -> ScriptVersion | None:
        """The person's draft, which the page opens."""
        draft: ScriptVersion | None = getattr(self.instance, "own_draft", None)
        return draft

    def clean_source(self) -> str:
        return with_lua_line_ends(self.cleaned_data["source"])

    def show_refusal(self, refusal: Exception) -> None:
        """Adds the reason, one of ``REFUSALS``, as an error; the editor marks the wrong line."""
        match refusal:
            case SourceError():
                self.add_error("source", ValidationError(words_for(refusal), code="syntax"))
                self.fields["source"].widget.attrs |= {
                    "data-error-line": refusal.line,
                    "data-error": refusal.flaw,
                }
            case ValidationError():
                add_errors(self, refusal)
            case NotFoundError():
                self.add_error(None, ValidationError(str(refusal), code="deleted"))
            case _:
                self.add_error("source", ValidationError(words_for(refusal), code="refused"))

    def show_conflict(self, conflict: ConflictError) -> None:
        """Keeps what was typed; publishing it again replaces what the other has published."""
        script, data = self.instance, self.cleaned_data
        context = conflict_context(script, self.own_draft, conflict, data.get("source", ""), data)
        self.conflict = context | {"settings": list(_other_settings(script, data))}
        shown = shown_by(script, self.own_draft) | {"base": str(script.current_version_id or "")}
        named = {self.add_prefix(name): str(value) for name, value in shown.items()}
        self.data = {**self.data.dict(), **named}  # type: ignore[attr-defined]
        self.add_error(None, ValidationError(f"{conflict} {_AFTER_CONFLICT}", code="conflict"))


def _other_settings(script: Script, typed: dict[str, Any]) -> Iterator[str]:
    """Settings that the script has and the form has not, in words."""
    if typed.get("name", script.name) != script.name:
        yield f"Name: now “{script.name}”, in your form “{typed['name']}”."
    if typed.get("timeout_seconds", script.timeout_seconds) != script.timeout_seconds:
        yield (
            f"Time limit: now {script.timeout_seconds:g} s, in your form "
            f"{typed['timeout_seconds']:g} s."
        )
    if typed.get("is_enabled", script.is_enabled) != script.is_enabled:
        yield f"Enabled: now {_yes_no(script.is_enabled)}, in your form the opposite."


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


class LibraryFilter(BooleanRadioFilter):
    """Filters by kind."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "library"


class ScriptChangeList(ActivityChangeList):
    """Scripts need attention that failed; also tells which versions are live."""

    def in_need(self, since: datetime) -> Q:
        recent = Run.objects.called_since(since).failed().counted()
        return Q(Exists(recent.filter(script=OuterRef("pk"))))

    def read(self, rows: list[Any], since: datetime) -> None:
        lives = lives_of(rows)
        activities = activity_of(rows, "script_id", since)
        for script in rows:
            script.live = lives.get(script.pk)
            script.activity = activities[script.pk]


class ScriptAdmin(DraftPages, TryItPages, DeletedByFlowModelAdmin):
    """The app whose hooks run scripts extends and registers it."""

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
    refusals = REFUSALS
    view_scope = Scope.READ_SCRIPTS
    change_scope = Scope.PUBLISH
    page_scopes = {
        "add": Scope.PUBLISH,
        "check": Scope.WRITE_DRAFTS,
        "alive": Scope.READ_SCRIPTS,
        "try_new": Scope.WRITE_DRAFTS,
        "try": Scope.RUN_SCRIPTS,
        "payloads": Scope.READ_PAYLOADS,
        "draft": Scope.WRITE_DRAFTS,
        "add_library": Scope.PUBLISH,
    }
    actions_list = ("add_library",)
    action_scopes = {"delete_selected_by_flow": Scope.PUBLISH}
    change_form_template = "admin/script.html"
    change_form_outer_after_template = "admin/script_below.html"
    compressed_fields = False
    list_display = (
        "name",
        "kind",
        "organisation",
        "is_enabled",
        "shown_live",
        "last_run",
        "runs_of_day",
        "used_by",
    )
    list_filter = (
        ("organisation", ScopedAutocompleteFilter),
        ("is_library", LibraryFilter),
        ("is_enabled", BooleanRadioFilter),
    )
    list_select_related = ("organisation",)
    sortable_by = ("name", "organisation", "is_enabled")
    ordering = ("-created_at", "-id")
    search_fields = ("name",)
    search_help_text = "Name"
    autocomplete_fields = ("organisation",)
    warn_unsaved_form = True
    delete_question = _DELETE

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[Script]
    ) -> None:
        held = maker_of(request, organisation).scopes
        try:
            delete_scripts(organisation, rows, held=held, origin=origin_of(request))
        except MissingScopeError as refusal:
            raise RoleNeededError.beyond(refusal, organisation) from refusal

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        scripts: Any = super().get_queryset(request)
        runs = Run.objects.counted().filter(script=OuterRef("pk"))
        last_run = runs.order_by("-id").values("status")
        rows: QuerySet[Any] = (
            scripts.existing()
            .select_related(
                "organisation",
                "current_version__script",
                "current_version__created_by",
                "current_version__created_with",
            )
            .prefetch_related("current_version__created_by__memberships")
            .annotate(
                last_status=Subquery(last_run[:1]),
                has_runs=Exists(Run.objects.filter(script=OuterRef("pk"))),
            )
        )
        return rows

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ScriptChangeList

    @action(description="Add library", icon="library_add")
    def add_library(self, request: HttpRequest) -> HttpResponse:
        return redirect(list_of(Script, "add", library="on"))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None:
            obj.own_draft = draft_by(obj, Author(user=person(request)))
        return super().get_form(request, obj, change=change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fields: tuple[Any, ...] = (("name", "timeout_seconds", "is_enabled"), "source")
        if isinstance(obj, Script) and obj.is_library:
            # Nothing runs it by itself.
            fields = ("name", "source")
        if obj is not None and not self.has_change_permission(request, obj):
            # The page shows the source below, as text.
            shown = fields[0] if isinstance(fields[0], tuple) else (fields[0],)
            return ((None, {"fields": ("organisation", *shown)}),)
        if obj is None:
            return ((None, {"fields": ("organisation", *fields, "library")}),)
        hidden = ("expected_revision", "seen_draft", "base")
        # The editor comes first.
        return ((None, {"fields": (*reversed(fields), "note", *hidden)}),)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        form = context["adminform"].form
        is_library = bool(form["library"].value()) if add else getattr(obj, "is_library", False)
        is_editor = add or self.has_change_permission(request, obj)
        context |= {
            "reference": editor_entries(),
            # A script that has a source needs no starter.
            "starters": [] if is_library or getattr(obj, "source", "") else starters(),
            "first_source": FIRST_SOURCE,
            "methods": METHODS,
            "max_body_bytes": settings.HOOK_MAX_BODY_BYTES,
            "is_editor": is_editor,
            "is_library": is_library,
            "can_be_tried": not is_library,
            "show_save": False,
            # At the end of the page, where no one presses it instead of Publish.
            "show_delete": False,
            "show_save_and_continue": False,
            "show_save_and_add_another": False,
            "publish_button": ("Create library" if is_library else "Create script")
            if add
            else "Publish",
        }
        if add and is_library:
            context["title"] = "Add library"
        if isinstance(obj, Script):
            context |= {"live": live_of(obj), **draft_context(obj, form.own_draft)}
            context |= {"suspect": self._suspect(obj)}
            context |= {"may_undo": self.allows(request, Scope.PUBLISH, obj)}
            if form.conflict is not None:
                context |= form.conflict | {"draft": None}
            if not is_editor:
                context |= {"saved_source": obj.source, "source_lines": obj.source.split("\n")}
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _suspect(self, script: Any) -> Suspect | None:
        """The release that may be to blame, if the last run failed."""
        if script.last_status not in FAILURES:
            return None
        since = failing_since(script.runs.called_since(timezone.now() - SUSPECTED_FOR))
        if since is None:
            return None
        return suspect_of(suspects({script.pk: [since]}).get((script.pk, since)), since)

    @display(description="Kind")
    def kind(self, script: Script) -> str:
        return "Library" if script.is_library else "Script"

    @display(description="Live")
    def shown_live(self, script: Any) -> SafeString | str:
        return live_line(script.live)

    @display(description="Last run")
    def last_run(self, script: Any) -> str:
        otherwise = "Only tried out" if script.has_runs else "None recorded"
        return newest_cell(script.activity.newest, otherwise)

    @display(description="Runs of 24 hours")
    def runs_of_day(self, script: Any) -> SafeString:
        return day_cell(script.activity)

    def save_by_flow(self, request: HttpRequest, form: ScriptForm, change: bool) -> Script:
        data, script = form.cleaned_data, form.instance
        source = data["source"]
        settings_of_form = ("name", "timeout_seconds", "is_enabled")
        fields = {name: data[name] for name in settings_of_form if name in data}
        by: Any = {"author": Author(user=person(request)), "origin": origin_of(request)}
        if not change:
            is_library = data.get("library", False)
            return create_script(
                script.organisation, source=source, is_library=is_library, **fields, **by
            )
        is_shown = data.get("expected_revision") is not None
        return publish_source(
            script,
            source,
            seen_draft=data.get("seen_draft", "") if is_shown else None,
            expected_revision=data.get("expected_revision"),
            note=data.get("note", ""),
            **fields,
            **by,
        )

    def response_add(
        self, request: HttpRequest, obj: Script, post_url_continue: str | None = None
    ) -> HttpResponse:
        if IS_POPUP_VAR in request.POST:
            response: HttpResponse = super().response_add(request, obj, post_url_continue)
            return response
        next_step = (
            "Library created. Scripts load it with require."
            if obj.is_library
            else "Script created. Create a hook or a schedule to run it."
        )
        self.message_user(request, next_step, messages.SUCCESS)
        return redirect(page_of(obj))

    def show_refusal(self, form: ScriptForm, refusal: Exception) -> None:
        form.show_refusal(refusal)

    def show_conflict(self, form: ScriptForm, conflict: ConflictError, current: Any) -> None:
        form.show_conflict(conflict)
