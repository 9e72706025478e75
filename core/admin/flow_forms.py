"""Forms of admin pages: fields that choose a row, and saving through flows that may refuse.

Where a row has a revision, a change by somebody else meanwhile is told, and nothing is lost.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.forms import ModelChoiceField
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.text import Truncator

from core.errors import ConflictError, NotFoundError

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


class RowChoiceField(ModelChoiceField[Model]):
    """Shows a malformed id as no choice: Django's widgets look every id up, which raises for it."""

    def prepare_value(self, value: Any) -> Any:
        shown = super().prepare_value(value)
        try:
            self.queryset.model._meta.pk.to_python(shown)  # type: ignore[union-attr]
        except (ValidationError, ValueError):
            return None
        return shown


class SavedByFlow:
    """Mixin for model admins whose form saves through a flow.

    The flow runs where Django saves, so validation writes nothing. A refusal undoes everything, and
    the page shows the form again with the reason and all that was typed. Where the row has a
    revision, the form's ``expected_revision`` is the one that it shows.
    """

    refusals: ClassVar[tuple[type[Exception], ...]] = (ValidationError,)
    """What ``save_by_flow`` raises for ``show_refusal`` to explain."""

    def save_by_flow(self, request: HttpRequest, form: Any, change: bool) -> Model:
        """Saves what the valid form holds; returns the created or changed row."""
        raise NotImplementedError

    def show_refusal(self, form: Any, refusal: Any) -> None:
        add_errors(form, refusal)

    def show_conflict(self, form: Any, conflict: ConflictError, current: Any) -> None:
        tell_conflict(form, conflict, current.revision)

    def _is_revised(self, request: HttpRequest, obj: Any) -> bool:
        """Whether the form changes a row with a revision."""
        may_change: Callable[..., bool] = self.has_change_permission  # type: ignore[attr-defined]
        return hasattr(obj, "revision") and may_change(request, obj)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets: Any = super().get_fieldsets(request, obj)  # type: ignore[misc]
        if not self._is_revised(request, obj):
            return fieldsets
        (title, options), *others = fieldsets
        fields = [*options["fields"], EXPECTED_REVISION]
        return [(title, {**options, "fields": fields}), *others]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        obj.pk = self.save_by_flow(request, form, change).pk
        obj.refresh_from_db()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if self._is_revised(request, obj):
            kwargs["form"] = with_revision(kwargs.get("form", self.form), obj.revision)  # type: ignore[attr-defined]
        form: Any = super().get_form(request, obj, change=change, **kwargs)  # type: ignore[misc]
        refusal: Exception | None = getattr(request, "refusal", None)
        if refusal is None:
            return form
        show_refusal, show_conflict = self.show_refusal, self.show_conflict

        class RefusedForm(form):
            def clean(self) -> Any:
                cleaned = super().clean()
                if isinstance(refusal, ConflictError):
                    show_conflict(self, refusal, obj)
                else:
                    show_refusal(self, refusal)
                return cleaned

        return RefusedForm

    def _changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        show: Callable[..., HttpResponse] = super()._changeform_view  # type: ignore[misc]
        if request.method != "POST":
            return show(request, *args, **kwargs)
        refusals: tuple[type[Exception], ...] = (*self.refusals, ConflictError)
        try:
            with transaction.atomic():
                return show(request, *args, **kwargs)
        except refusals as refusal:
            request.refusal = refusal  # type: ignore[attr-defined]
            return show(request, *args, **kwargs)


def is_saved(form: forms.Form, save: Callable[[], object], row: Any = None) -> bool:
    """Whether the form is valid and the flow took it; the form has the reason if it did not.

    ``row`` is the one that a ``RevisionForm`` changes.
    """
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            save()
    except ValidationError as refusal:
        add_errors(form, refusal)
        return False
    except NotFoundError as gone:
        form.add_error(None, str(gone))
        return False
    except ConflictError as conflict:
        row.refresh_from_db()
        tell_conflict(form, conflict, row.revision)
        return False
    return True


def add_errors(
    form: forms.BaseForm, refusal: ValidationError, shown_as: Mapping[str, str] | None = None
) -> None:
    """Adds each error to its field, or to the form if it has no such field.

    ``shown_as`` names the form's fields that have other names than the flow's.
    """
    for field, errors in refusal.update_error_dict({}).items():
        name = (shown_as or {}).get(field, field)
        form.add_error(name if name in form.fields else None, errors)
