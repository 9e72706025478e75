"""Publishes what an editor holds: settings and source, in place of the author's draft."""

from typing import Any

from django.db import transaction

from scripts_engine.flows.drafts import changed_elsewhere, delete_draft, draft_by
from scripts_engine.flows.scripts import update_script
from scripts_engine.models import Script
from scripts_engine.runs.spec import Author


def publish_source(
    script: Script,
    source: str,
    *,
    author: Author,
    seen_draft: str | None = None,
    **changes: Any,
) -> Script:
    """Publishes the source and other ``changes`` of ``update_script``, as one release.

    ``seen_draft`` is the SHA-256 of the author's draft as the editor saved or showed it: the draft
    ends, because the editor holds what became of it. ``None`` leaves a draft alone. Raises what
    ``update_script`` raises, and ``ConflictError`` if there is another draft than the one seen.
    """
    with transaction.atomic():
        draft = draft_by(script, author) if seen_draft is not None else None
        is_news = draft is not None and draft.source not in {source, script.source}
        if draft is not None and is_news and draft.source_digest != seen_draft:
            raise changed_elsewhere(draft)
        saved = update_script(
            script,
            author=author,
            source=None if source == script.source else source,
            draft=draft,
            **changes,
        )
        if draft is not None and (left := draft_by(script, author)) is not None:
            delete_draft(left)
    return saved
