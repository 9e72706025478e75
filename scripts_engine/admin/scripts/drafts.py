"""The person's own draft on a script's page, the endpoint that saves it, and conflicts of edits.

A conflict shows both sources side by side, and a merged text to edit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, JsonResponse
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from accounts.admin.reach import person
from accounts.admin.tenancy import TenantModelAdmin
from core.admin.links import action_of
from core.errors import ConflictError
from core.http.body import MalformedJson, parse_json_object
from scripts_engine.admin.differences import MAX_LINES, DiffLine, diff_of_sources
from scripts_engine.admin.scripts.refusals import REFUSALS, words_for
from scripts_engine.flows.drafts import draft_by, save_draft
from scripts_engine.flows.scripts import existing_script
from scripts_engine.flows.source import SourceError, with_lua_line_ends
from scripts_engine.line_diff import MAX_COMPARED_LINES, Merged, merge
from scripts_engine.models import Script, ScriptVersion
from scripts_engine.runs.spec import Author


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sources that both differ from the one that the edit began with."""

    their_title: str
    theirs: list[DiffLine]
    yours: list[DiffLine]
    merged: Merged


def compared(script: Script, source: str, *, base: ScriptVersion | None) -> Compared | None:
    """The source in an editor, and what is live now; ``None`` if what is live did not change."""
    live = script.current_version
    if live is None or live.source in {source, "" if base is None else base.source}:
        return None
    return _compared(
        f"Version {live.number}, live", live.source, source, "" if base is None else base.source
    )


def compared_with_draft(
    draft: ScriptVersion, source: str, *, base: ScriptVersion | None
) -> Compared:
    """The source in an editor, and the same author's draft as another window saved it."""
    title = "Your draft from another window"
    return _compared(title, draft.source, source, "" if base is None else base.source)


def version_named(script: Script, version_id: UUID | None) -> ScriptVersion | None:
    """The version of the script with the id, which a form may have been given."""
    return None if version_id is None else script.versions.filter(pk=version_id).first()


def _compared(title: str, theirs: str, yours: str, base: str) -> Compared:
    one, other = theirs.split("\n"), yours.split("\n")
    same = _common_places(one, other)
    return Compared(
        title,
        list(_shown(one, {place for place, _ in same}, "removed")),
        list(_shown(other, {place for _, place in same}, "added")),
        merge(base, yours, theirs, their_name=title.lower()),
    )


def _common_places(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    if max(len(one), len(other)) > MAX_COMPARED_LINES:
        return []
    # Not without autojunk, or lines that repeat would cost the cube of their number.
    blocks = SequenceMatcher(None, one, other).get_matching_blocks()
    return [(a + step, b + step) for a, b, size in blocks for step in range(size)]


def _shown(lines: Sequence[str], same: set[int], kind: str) -> Iterator[DiffLine]:
    for place, line in enumerate(lines[:MAX_LINES]):
        yield DiffLine(line, "" if place in same else kind)


class DraftForm(forms.Form):
    """What the editor sends: the source, and what its page has shown."""

    source = forms.CharField(required=False, strip=False)
    expected_revision = forms.IntegerField()
    seen_draft = forms.CharField(required=False, max_length=64)
    base = forms.UUIDField(required=False)
    has_compared = forms.BooleanField(required=False)
    """Whether the person has seen what went live since the draft was begun."""


class DraftPages(TenantModelAdmin):
    def get_urls(self) -> list[URLPattern]:
        draft = path(
            "<path:object_id>/draft/",
            self.admin_site.admin_view(require_POST(self.draft_view)),
            name="scripts_engine_script_draft",
        )
        return [draft, *super().get_urls()]

    def draft_view(self, request: HttpRequest, object_id: str) -> JsonResponse:
        """Saves the source as the person's draft.

        Answers ``{shown, line, html}``; 409 with the same, and ``conflict`` as HTML, if there is
        something newer; 400 with ``{message, line}`` for a source that cannot be saved. ``shown``
        are the values that the page keeps for the next save.
        """
        script: Script = self.get_or_404(request, object_id)
        form = DraftForm(_json_object(request))
        if not form.is_valid():
            return _refused("The draft cannot be read.", HTTPStatus.BAD_REQUEST)
        data = form.cleaned_data
        source, author = with_lua_line_ends(data["source"]), Author(user=person(request))
        own = draft_by(script, author)
        # What went live before the page was shown is said there; the draft's base stays.
        is_behind = own is not None and own.base_id != script.current_version_id
        stays = is_behind and not data["has_compared"]
        is_known = data["expected_revision"] == script.revision
        try:
            draft = save_draft(
                script,
                source,
                author=author,
                expected_revision=None if stays and is_known else data["expected_revision"],
                seen_draft=data["seen_draft"],
            )
        except ConflictError as conflict:
            return _conflict(request, script, conflict, source, data)
        except REFUSALS as refusal:
            line = refusal.line if isinstance(refusal, SourceError) else None
            return _refused(words_for(refusal), HTTPStatus.BAD_REQUEST, line)
        present = existing_script(script.pk)
        context = draft_context(present, draft)
        return JsonResponse(
            {
                "shown": shown_by(present, draft),
                "line": render_to_string("admin/parts/draft_line.html", context, request),
                "html": render_to_string("admin/parts/draft.html", context, request),
            }
        )


def shown_by(script: Script, draft: ScriptVersion | None) -> dict[str, Any]:
    """What the form keeps of the script and the draft that its page shows."""
    base_id = script.current_version_id if draft is None else draft.base_id
    return {
        "expected_revision": script.revision,
        "seen_draft": "" if draft is None else draft.source_digest,
        "base": "" if base_id is None else str(base_id),
    }


def draft_context(script: Script, draft: ScriptVersion | None) -> dict[str, Any]:
    """For ``admin/parts/draft.html``."""
    if draft is None:
        return {"draft": None}
    live = script.current_version
    is_behind = live is not None and draft.base_id != live.pk
    return {
        "draft": draft,
        "discard": action_of(draft, "discard"),
        "live_version": live,
        "is_behind": is_behind,
        "compared": compared(script, draft.source, base=draft.base) if is_behind else None,
        "diff": diff_of_sources(
            script.source,
            draft.source,
            old_name="nothing" if live is None else f"version {live.number}",
            new_name="your draft",
        ),
    }


def _conflict(
    request: HttpRequest, script: Script, error: ConflictError, source: str, data: dict[str, Any]
) -> JsonResponse:
    present = existing_script(script.pk)
    own = draft_by(present, Author(user=person(request)))
    context = conflict_context(present, own, error, source, data)
    shown = shown_by(present, own) | {"base": str(present.current_version_id or "")}
    html = render_to_string("admin/parts/conflict.html", context, request)
    return JsonResponse(
        {"shown": shown, "conflict": html, "message": str(error)}, status=HTTPStatus.CONFLICT
    )


def conflict_context(
    script: Script,
    draft: ScriptVersion | None,
    error: ConflictError,
    source: str,
    data: dict[str, Any],
) -> dict[str, Any]:
    """For ``admin/parts/conflict.html``; ``data`` has what the page had shown."""
    base = version_named(script, data.get("base"))
    if data.get("expected_revision") == script.revision and draft is not None:
        found: Compared | None = compared_with_draft(draft, source, base=base)
    else:
        found = compared(script, source, base=base)
    return {"conflict": str(error), "compared": found}


def _refused(message: str, status: HTTPStatus, line: int | None = None) -> JsonResponse:
    return JsonResponse({"message": message, "line": line}, status=status)


def _json_object(request: HttpRequest) -> dict[str, Any]:
    """The request's JSON object; an empty one, which the form refuses, if it is invalid."""
    try:
        return parse_json_object(request.body)
    except MalformedJson:
        return {}
