"""A release in words: what it changed, and the note that says what it is for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.models import Organisation
from scripts_engine.admin.differences import Difference, difference_of
from scripts_engine.models import Action, Release, ReleaseChange
from scripts_engine.models.release import MAX_NOTE_CHARACTERS
from scripts_engine.releases.kinds import action_of, kind_named
from scripts_engine.releases.undo import Item

# A page shows no more changes in full, and a list names no more.
MAX_SHOWN = 100
NAMED_IN_LIST = 3
_DONE = {
    Action.CREATE: "created",
    Action.UPDATE: "changed",
    Action.RENAME: "renamed",
    Action.DELETE: "deleted",
}


@dataclass(frozen=True, slots=True)
class ShownChange:
    """A change as a page shows it: a title such as “Script “orders” changed”."""

    title: str
    difference: Difference
    note: str = ""


def title_of(kind: str, name: str, action: str) -> str:
    return f"{kind} “{name}” {_DONE.get(Action(action), 'unchanged')}"


def in_words(changes: Iterable[ReleaseChange], total: int) -> str:
    """The first few changes as a sentence; scripts whose version changed were published."""
    named = [_short(change) for change in changes]
    more = total - len(named)
    if more > 0:
        named.append(f"{more} more")
    return ", ".join(named)


def _short(change: ReleaseChange) -> str:
    is_published = change.kind == "Script" and change.version_after != change.version_before
    if change.action == Action.UPDATE and is_published:
        return f"“{change.name}” published"
    kind = "" if change.kind == "Script" else f"{change.kind.lower()} "
    return f"{kind}“{change.name}” {_DONE[Action(change.action)]}"


def changes_of(release: Release) -> list[ShownChange]:
    rows = release.changes.order_by("place")[:MAX_SHOWN]
    return [
        ShownChange(
            title_of(row.kind, row.name, row.action),
            _difference(release.organisation, row.kind, row.before, row.after),
        )
        for row in rows
    ]


def undone_changes(release: Release, items: Iterable[Item]) -> list[ShownChange]:
    """What undoing the release changes, and what is lost by it."""
    return [
        ShownChange(
            title_of(item.kind.name, item.name, action_of(item.now, item.target)),
            _difference(release.organisation, item.kind.name, item.now, item.target),
            note=f"Changed since {str(release).lower()}; that change is lost."
            if item.has_changed_since
            else "",
        )
        for item in list(items)[:MAX_SHOWN]
    ]


def _difference(organisation: Organisation, kind: str, before: Any, after: Any) -> Difference:
    return difference_of(kind_named(kind).difference(organisation, before, after))


class NoteForm(forms.Form):
    note = forms.CharField(
        required=False,
        max_length=MAX_NOTE_CHARACTERS,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        label="Note (optional)",
        help_text="What the release is for. The Releases page shows it.",
    )
