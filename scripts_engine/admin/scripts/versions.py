"""Version pages: the diff to the previous version, the source, restoring."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.reach import person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.links import page_of
from core.errors import LimitExceededError, RateLimitedError
from core.http.origin import origin_of
from scripts_engine.admin.scripts.form import saved_too_often
from scripts_engine.errors import SourceError
from scripts_engine.flows.author import Author
from scripts_engine.flows.scripts import restore_script_version
from scripts_engine.flows.source import diff_from_previous
from scripts_engine.models import ScriptVersion
from scripts_engine.sandbox.parent.pool import SandboxBusy, SandboxUnavailable

_RESTORE = Question(
    title="Restore version",
    consequences=(
        "Its source becomes the script's newest version and runs from now on. "
        "Later versions are kept."
    ),
    button="Restore",
)


_KINDS = {"+": "added", "-": "removed", "@": "place"}
_HEADER_LINES = 2
# Each line is an HTML element: a hundred thousand of them take seconds to render.
MAX_LINES = 2_000


@admin.register(ScriptVersion)
class ScriptVersionAdmin(ReadOnlyTenantModelAdmin):
    """Read-only pages, linked from scripts and runs."""

    empty_state = EmptyState(
        "Each change to a script's source creates a version. Add a script to get the first.",
        "Add script",
        "admin:scripts_engine_script_add",
    )
    organisation_path = "script__organisation"
    change_form_template = "admin/script_version.html"
    list_display = ("__str__", "created_at", "shown_author")
    list_filter = (("script", ScopedAutocompleteFilter),)
    list_select_related = ("script", "created_by", "created_with")
    ordering = ("-id",)
    actions_detail = ("restore",)
    fields = readonly_fields = ("number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.prefetch_related("created_by__memberships")

    @display(description="By")
    def shown_author(self, version: ScriptVersion) -> str:
        return version.author or ""

    def get_model_perms(self, request: HttpRequest) -> dict[str, Any]:
        """Hides versions from the menu."""
        return {}

    def has_restore_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Allows it for an earlier version of a script that still exists."""
        version = self.get_object(request, object_id) if object_id else None
        return (
            version is not None
            and version.script.deleted_at is None
            and version.script.current_version_id != version.pk
        )

    @action(description="Restore this version", permissions=["restore"], icon="history")
    def restore(self, request: HttpRequest, object_id: str) -> HttpResponse:
        version = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _RESTORE, [version])
        try:
            script = restore_script_version(
                version, author=Author(user=person(request)), origin=origin_of(request)
            )
        except (SandboxBusy, SandboxUnavailable):
            why = "No sandbox slot became free to compile it. Nothing was changed; try again."
            self.message_user(request, why, messages.ERROR)
            return redirect(page_of(version))
        except LimitExceededError as error:
            self.message_user(request, error.message, messages.ERROR)
            return redirect(page_of(version))
        except RateLimitedError as error:
            self.message_user(request, saved_too_often(error), messages.ERROR)
            return redirect(page_of(version))
        except (SourceError, ValidationError):
            why = "This version no longer compiles. Nothing was changed."
            self.message_user(request, why, messages.ERROR)
            return redirect(page_of(version))
        self.log_change(request, version, "Restored.")
        self.message_user(request, f"Restored {version}.", messages.SUCCESS)
        return redirect(page_of(script))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        version: ScriptVersion = self.get_or_404(request, object_id)
        context = {
            **(extra_context or {}),
            "title": str(version),
            "version": version,
            "is_current": version.script.current_version_id == version.pk,
            "diff": diff_of(version),
            "show_history": False,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response


class DiffLine(NamedTuple):
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Diff:
    lines: list[DiffLine]
    hidden_lines: int


def diff_of(version: ScriptVersion) -> Diff:
    """The diff to the previous version, without its header; empty if nothing changed."""
    lines = diff_from_previous(version).split("\n")[_HEADER_LINES:]
    shown = [DiffLine(line, _KINDS.get(line[:1], "")) for line in lines[:MAX_LINES]]
    return Diff(shown, hidden_lines=len(lines) - len(shown))
