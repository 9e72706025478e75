"""Tenant isolation in the admin: the base classes of all model admins.

Django's permissions and groups are not used. Lists, forms, choices, autocompletes and typed URLs
show only rows within the person's reach (``accounts.admin.reach``). Each page states what can be
done there; the default is to add and to change.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import Field, ModelChoiceField, ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from unfold.admin import ModelAdmin, TabularInline

from accounts.admin.reach import (
    administered_organisation_ids,
    administered_organisations,
    is_administrator,
    is_superuser,
)
from accounts.models import User
from core.admin.choices import RowChoiceField
from core.admin.display import EmptyState
from core.admin.panels import panels_of
from core.database.ids import parse_uuid
from core.errors import LimitExceededError

_FORMER_MEMBER = "A former member"


class _TenantChoices:
    """Mixin whose foreign keys offer only rows within reach, without add and change shortcuts.

    ``help_texts`` and ``labels`` replace those of the model's fields in forms: the meaning, the
    unit, an example, the effect of a change. The models' own serve the GraphQL documentation.
    """

    admin_site: Any
    help_texts: ClassVar[Mapping[str, str]] = {}
    labels: ClassVar[Mapping[str, str]] = {}

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Model] | None:
        other = self.admin_site.get_model_admin(db_field.remote_field.model)
        kwargs["queryset"] = other.get_queryset(request)
        kwargs["form_class"] = RowChoiceField
        field: ModelChoiceField[Model] | None = super().formfield_for_foreignkey(  # type: ignore[misc]
            db_field, request, **kwargs
        )
        return field

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Field | None:
        field: Field | None = super().formfield_for_dbfield(  # type: ignore[misc]
            db_field, request, **kwargs
        )
        if field is None:
            return None
        field.help_text = self.help_texts.get(db_field.name, field.help_text)
        field.label = self.labels.get(db_field.name, field.label)
        if isinstance(db_field, ForeignKey):
            # The wrapper adds links that add and change the other object in a pop-up.
            field.widget = getattr(field.widget, "widget", field.widget)
        return field


class TenantModelAdmin(_TenantChoices, ModelAdmin):
    """Model admin for rows of an organisation.

    ``organisation_path`` is the look-up from a row to its organisation.
    """

    organisation_path = "organisation"
    empty_state: ClassVar[EmptyState | None] = None
    change_form_outer_after_template = "admin/panels.html"
    list_per_page = 50

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that an administrator who is not a superuser may see."""
        ids = administered_organisation_ids(request)
        return rows.filter(**{f"{self.organisation_path}__in": ids})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows if is_superuser(request) else self.within_reach(request, rows)

    def reaches(self, request: HttpRequest, obj: Model | None) -> bool:
        """Whether the row is within the person's reach; without a row, whether any may be."""
        if not is_administrator(request):
            return False
        if obj is None or is_superuser(request):
            return True
        return self.get_queryset(request).filter(pk=obj.pk).exists()

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_administrator(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.reaches(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_administrator(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.reaches(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_or_404(self, request: HttpRequest, object_id: str) -> Any:
        """The row with the id from an action's URL."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        return obj

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        raise Http404

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form; if the flow has refused what it holds, with that as its error."""
        form: Any = super().get_form(request, obj, change=change, **kwargs)
        refusal: LimitExceededError | None = getattr(request, "refusal", None)
        return form if refusal is None else _refused(form, refusal)

    def _changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Shows the form again if the flow refuses one row more, which it does when it saves."""
        show: Callable[..., HttpResponse] = super()._changeform_view
        if request.method != "POST":
            return show(request, *args, **kwargs)
        try:
            with transaction.atomic():
                return show(request, *args, **kwargs)
        except LimitExceededError as error:
            request.refusal = error  # type: ignore[attr-defined]
            return show(request, *args, **kwargs)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Values from the query string, and the organisation if the person has only one."""
        typed: dict[str, Any] = super().get_changeform_initial_data(request)
        initial = {name: value for name, value in typed.items() if self._is_initial(name, value)}
        sole = list(administered_organisations(request).values_list("pk", flat=True)[:2])
        if len(sole) == 1:
            initial.setdefault("organisation", sole[0])
        return initial

    def _is_initial(self, name: str, value: Any) -> bool:
        """Whether the value can prefill the field: for a relation, only a UUID."""
        field = next((field for field in self.opts.get_fields() if field.name == name), None)
        is_relation = name == "organisation" or (field is not None and field.is_relation)
        return not is_relation or parse_uuid(str(value)) is not None

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Hides names and e-mails that the person may not see."""
        response: HttpResponse = super().history_view(request, object_id, extra_context)
        entries = getattr(response, "context_data", None) or {}
        if not is_superuser(request):
            self._hide_strangers(request, [entry.user for entry in entries.get("action_list", ())])
        return response

    def _hide_strangers(self, request: HttpRequest, users: list[User]) -> None:
        """Shows names only to the home organisation, e-mails only to organisations of the user.

        The e-mail of a superuser, who belongs to no organisation, is always shown.
        """
        reached = self.admin_site.get_model_admin(User).get_queryset(request)
        found = reached.filter(pk__in={user.pk for user in users})
        is_own = dict(found.values_list("pk", "is_own"))
        for user in users:
            if not is_own.get(user.pk):
                user.name = ""
            if user.pk not in is_own and not user.is_superuser:
                user.email = _FORMER_MEMBER

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Model | None = None,
    ) -> HttpResponse:
        context["panels"] = [] if obj is None else panels_of(request, obj)
        response: HttpResponse = super().render_change_form(
            request, context, add, change, form_url, obj
        )
        return response


def _refused(form: type[ModelForm[Any]], refusal: LimitExceededError) -> type[ModelForm[Any]]:
    class RefusedForm(form):  # type: ignore[valid-type, misc]
        def clean(self) -> Any:
            self.add_error(None, refusal)
            return super().clean()

    return RefusedForm


class ReadOnlyTenantModelAdmin(TenantModelAdmin):
    """Read-only pages; changes are made through actions."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class TenantInline(_TenantChoices, TabularInline):
    """Rows on the page of another row, which has checked the person's reach."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)
