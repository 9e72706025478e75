"""Version pages: the difference, the source; restoring versions, publishing drafts."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.reach import person
from accounts.admin.tenancy import ReadOnlyTenantModelAdmin
from accounts.scopes import Scope
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.display import EmptyState, action, display
from core.admin.filters import ScopedAutocompleteFilter
from core.admin.flow_forms import RevisionForm, is_saved
from core.admin.links import page_of
from core.errors import LimitExceededError, NotFoundError, RateLimitedError
from core.http.origin import origin_of
from scripts_engine.admin.differences import Diff, diff_of_lines, diff_of_sources
from scripts_engine.admin.releases.words import NoteForm
from scripts_engine.admin.scripts.live import live_of
from scripts_engine.admin.scripts.refusals import REFUSALS, saved_too_often, words_for
from scripts_engine.flows.drafts import delete_draft, publish
from scripts_engine.flows.scripts import restore_script_version
from scripts_engine.flows.source import SourceError, diff_from_previous
from scripts_engine.flows.update_dependents import outdated_dependents, update_dependents
from scripts_engine.models import Release, RequiredLibrary, ScriptVersion, VersionState
from scripts_engine.runs.spec import Author, draft_owner
from scripts_engine.sandbox import SandboxBusy, SandboxUnavailable

_RESTORE = Question(
    title="Restore version",
    consequences=(
        "Its source becomes the script's newest version and runs from now on. "
        "Later versions are kept."
    ),
    button="Restore",
)

_PUBLISH = Question(
    title="Publish draft",
    consequences=(
        "It becomes the live version, as a release: hooks, schedules and queued runs use it from "
        "now on. Undoing the release puts the present version back."
    ),
    button="Publish",
)
_UPDATE = Question(
    title="Update dependents",
    consequences=(
        "Publishes this version, and new versions of the scripts above that require it, as one "
        "release. Their sources stay as they are live; drafts are not touched."
    ),
    button="Update dependents",
)
_DISCARD = Question(
    title="Discard draft",
    consequences="The draft is deleted. What is live does not change.",
    button="Discard",
)


class PublishForm(RevisionForm, NoteForm):
    """Its revision is that of the script whose live version the person sees."""


@admin.register(ScriptVersion)
class ScriptVersionAdmin(ReadOnlyTenantModelAdmin):
    """Read-only pages, linked from scripts and runs."""

    empty_state = EmptyState(
        "Each change to a script's source creates a version. Add a script to get the first.",
        "Add script",
        "admin:scripts_engine_script_add",
    )
    organisation_path = "script__organisation"
    view_scope = Scope.READ_SCRIPTS
    page_scopes = {
        "restore": Scope.PUBLISH,
        "publish": Scope.PUBLISH,
        "update_dependents": Scope.PUBLISH,
        # Another's draft takes more: see the action.
        "discard": Scope.WRITE_DRAFTS,
    }
    change_form_template = "admin/script_version.html"
    list_display = ("__str__", "created_at", "shown_author")
    list_filter = (("script", ScopedAutocompleteFilter),)
    ordering = ("-id",)
    actions_detail = ("publish", "update_dependents", "discard", "restore")
    fields = readonly_fields = ("number",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        # Django ignores list_select_related where the rows select any already.
        related = rows.select_related("script", "created_by", "created_with", "base")
        return related.prefetch_related("created_by__memberships")

    @display(description="By")
    def shown_author(self, version: ScriptVersion) -> str:
        return version.author

    def get_model_perms(self, request: HttpRequest) -> dict[str, Any]:
        """Hides versions from the menu."""
        return {}

    def has_restore_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Allows it for an earlier version of a script that still exists."""
        version = self.get_object(request, object_id) if object_id else None
        return (
            version is not None
            and version.script.deleted_at is None
            and version.state is VersionState.PAST
        )

    def has_publish_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Allows it for drafts of a script that still exists."""
        version = self.get_object(request, object_id) if object_id else None
        return (
            version is not None
            and version.script.deleted_at is None
            and version.state is VersionState.DRAFT
        )

    def has_discard_permission(self, request: HttpRequest, object_id: str | None = None) -> bool:
        """Allows it for one's own drafts, and for drafts of others with the scope Publish."""
        if not self.has_publish_permission(request, object_id):
            return False
        draft: Any = self.get_object(request, str(object_id))
        is_own = draft.draft_of == draft_owner(Author(user=person(request)))
        return is_own or self.allows(request, Scope.PUBLISH, draft)

    @action(description="Publish this draft", permissions=["publish"], icon="publish")
    def publish(self, request: HttpRequest, object_id: str) -> HttpResponse:
        draft: ScriptVersion = self.get_or_404(request, object_id)
        script = draft.script
        form = PublishForm(script.revision, request.POST if is_confirmed(request) else None)
        released: list[Release] = []

        def save() -> None:
            expected = form.expected_revision
            try:
                release = publish(
                    script.organisation,
                    [draft],
                    expected_revisions=None if expected is None else {script.pk: expected},
                    note=form.cleaned_data["note"],
                    origin=origin_of(request),
                )
            except SourceError as error:
                raise ValidationError({"note": words_for(error)}) from None
            released.append(release)

        try:
            is_published = is_confirmed(request) and is_saved(form, save, script)
        except NotFoundError as error:
            self.message_user(request, str(error), messages.ERROR)
            return redirect(page_of(draft.script))
        if not is_published:
            return ask(self, request, _question_about(draft), [draft], form)
        self.log_change(request, draft, "Published.")
        self.message_user(request, f"Published as {released[0]}.", messages.SUCCESS)
        return redirect(page_of(draft.script))

    def has_update_dependents_permission(
        self, request: HttpRequest, object_id: str | None = None
    ) -> bool:
        """Allows it for the live version and drafts of a library."""
        version = self.get_object(request, object_id) if object_id else None
        return (
            version is not None
            and version.script.is_library
            and version.script.deleted_at is None
            and version.state is not VersionState.PAST
        )

    @action(
        description="Update dependents",
        permissions=["update_dependents"],
        icon="published_with_changes",
    )
    def update_dependents(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Publishes the version, with new versions of the scripts that require another one."""
        version: ScriptVersion = self.get_or_404(request, object_id)
        dependents = outdated_dependents(version.script.organisation, version)
        if not dependents and version.state is VersionState.LIVE:
            told = f"All scripts that require {version.script} have this version."
            self.message_user(request, told, messages.INFO)
            return redirect(page_of(version.script))
        form = NoteForm(request.POST if is_confirmed(request) else None)
        if form.is_valid() and (made := self._updated(request, version, form)) is not None:
            self.log_change(request, version, "Updated the dependents.")
            self.message_user(request, f"Updated, as {str(made).lower()}.", messages.SUCCESS)
            return redirect(page_of(made))
        return ask(self, request, _UPDATE, [version, *dependents], form)

    def _updated(
        self, request: HttpRequest, version: ScriptVersion, form: NoteForm
    ) -> Release | None:
        """The release; ``None`` if the form has the reason why there is none."""
        by = Author(user=person(request))
        note, origin = form.cleaned_data["note"], origin_of(request)
        try:
            return update_dependents(version, author=by, note=note, origin=origin)
        except REFUSALS as refusal:
            form.add_error("note", words_for(refusal))
        return None

    @action(description="Discard this draft", permissions=["discard"], icon="delete")
    def discard(self, request: HttpRequest, object_id: str) -> HttpResponse:
        draft: ScriptVersion = self.get_or_404(request, object_id)
        if not is_confirmed(request):
            return ask(self, request, _DISCARD, [draft])
        try:
            delete_draft(draft)
        except NotFoundError as error:
            self.message_user(request, str(error), messages.ERROR)
        else:
            told = f"Discarded the draft of {draft.script}."
            self.message_user(request, told, messages.SUCCESS)
        return redirect(page_of(draft.script))

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
            "state": version.state,
            "is_draft": version.state is VersionState.DRAFT,
            "live": live_of(version.script),
            "release": Release.objects.putting_live(version.pk).first(),
            "diff": diff_of(version),
            "requirements": requirements_of(version),
            "show_history": False,
        }
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response


def _question_about(draft: ScriptVersion) -> Question:
    live = draft.script.current_version
    if live is None or draft.base_id == live.pk:
        return _PUBLISH
    warning = f"Version {live.number} went live after this draft was begun, and is replaced."
    return _PUBLISH._replace(warning=warning)


def requirements_of(version: ScriptVersion) -> list[RequiredLibrary]:
    """The libraries that the version requires, in the versions that it keeps."""
    required = version.requirements.select_related("library_version__script")
    return list(required.order_by("name"))


def diff_of(version: ScriptVersion) -> Diff:
    """The diff to the previous version, or of a draft to what is live."""
    if version.state is VersionState.DRAFT:
        live = version.script.current_version
        return diff_of_sources(
            version.script.source,
            version.source,
            old_name="nothing" if live is None else f"version {live.number}",
            new_name="draft",
        )
    return diff_of_lines(diff_from_previous(version).split("\n"))
