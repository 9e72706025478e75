"""Forms of rows with a revision: a change by somebody else meanwhile is told, nothing is lost."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.text import Truncator

from core.errors import ConflictError

EXPECTED_REVISION = "expected_revision"
_SHOWN_CHARACTERS = 300


def revision_field(revision: int) -> forms.IntegerField:
    """The revision that the form shows, which the browser sends back."""
    return forms.IntegerField(required=False, initial=revision, widget=forms.HiddenInput)


def with_revision(form: Any, revision: int) -> Any:
    """The class of forms with a ``revision_field``."""
    return type(form.__name__, (form,), {EXPECTED_REVISION: revision_field(revision)})


class RevisionForm(forms.Form):
    """A form of a row with a revision, which is not a ``ModelForm``."""

    def __init__(self, revision: int, data: QueryDict | None = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.fields[EXPECTED_REVISION] = revision_field(revision)

    @property
    def expected_revision(self) -> int | None:
        return self.cleaned_data[EXPECTED_REVISION]


def tell_conflict(form: Any, conflict: ConflictError, revision: int) -> None:
    """Adds an error: who changed the row, when, and what it holds now where it differs.

    The form keeps what was typed; sent again, it replaces the row of this revision.
    """
    show_next(form, EXPECTED_REVISION, str(revision))
    now = "; ".join(_values_now(form))
    holds = f"It holds now: {now}. " if now else ""
    message = f"{conflict} Nothing was saved. {holds}Save again to replace that change."
    form.add_error(None, ValidationError(message, code="changed"))


def show_next(form: Any, name: str, value: str) -> None:
    """Lets the form, shown again, have that value instead of the one that was sent."""
    form.data = form.data.copy()
    form.data[form.add_prefix(name)] = value


def _values_now(form: Any) -> list[str]:
    found = []
    for name in form.changed_data:
        field = form.fields[name]
        value = form.get_initial_for_field(field, name)
        if not field.widget.is_hidden and value not in (None, ""):
            found.append(f"{form[name].label}: {_in_words(value)}")
    return found


def _in_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return Truncator(" ".join(str(value).split())).chars(_SHOWN_CHARACTERS)
