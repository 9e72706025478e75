"""The wall between tenants in the admin: every model's page stands behind it.

Django's own permissions and groups play no part. What a person sees in lists, forms, choices,
autocompletes and under addresses typed by hand are the rows within reach
(``accounts.admin.reach``); what they may do is what the page says of itself, by default to add
and to change.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import Field, ModelChoiceField
from django.http import Http404, HttpRequest, HttpResponse
from unfold.admin import ModelAdmin, TabularInline

from accounts.admin.reach import (
    administered_organisation_ids,
    administered_organisations,
    is_administrator,
    is_superuser,
)
from accounts.models import User
from core.admin.display import EmptyState
from core.admin.panels import panels_of
from core.database.ids import parse_uuid

NOT_A_MEMBER = "Somebody who is not a member any more"


class _TenantChoices:
    """Foreign keys offer what the person may see of the other model, without shortcuts to it.

    ``help_texts`` and ``labels`` are words for the model's fields in the forms: what a field is,
    its unit, an example, what a change does. The models' own are for programs.
    """

    admin_site: Any
    help_texts: ClassVar[Mapping[str, str]] = {}
    labels: ClassVar[Mapping[str, str]] = {}

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Model] | None:
        other = self.admin_site.get_model_admin(db_field.remote_field.model)
        kwargs["queryset"] = other.get_queryset(request)
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
            # The wrapper offers to add and change the other object in a window of its own.
            field.widget = getattr(field.widget, "widget", field.widget)
        return field


class TenantModelAdmin(_TenantChoices, ModelAdmin):
    """The pages of a model whose rows belong to an organisation.

    ``organisation_path`` is the look-up that leads from a row to its organisation.
    """

    organisation_path = "organisation"
    empty_state: ClassVar[EmptyState | None] = None
    change_form_outer_after_template = "admin/panels.html"
    list_per_page = 50

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Those of the rows that an administrator, who is no superuser, may see."""
        ids = administered_organisation_ids(request)
        return rows.filter(**{f"{self.organisation_path}__in": ids})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows if is_superuser(request) else self.within_reach(request, rows)

    def reaches(self, request: HttpRequest, obj: Model | None) -> bool:
        """Whether the row, when there is one, is within the person's reach."""
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
        """The row of an action's address."""
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        return obj

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        raise Http404

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What the address says; and the organisation, for who has only one."""
        typed: dict[str, Any] = super().get_changeform_initial_data(request)
        initial = {name: value for name, value in typed.items() if self._may_stand_for(name, value)}
        sole = list(administered_organisations(request).values_list("pk", flat=True)[:2])
        if len(sole) == 1:
            initial.setdefault("organisation", sole[0])
        return initial

    def _may_stand_for(self, name: str, value: Any) -> bool:
        """Whether the value may be the id that a relation of that name takes."""
        field = next((field for field in self.opts.get_fields() if field.name == name), None)
        is_relation = name == "organisation" or (field is not None and field.is_relation)
        return not is_relation or parse_uuid(str(value)) is not None

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Names those who acted as far as the person may know them."""
        response: HttpResponse = super().history_view(request, object_id, extra_context)
        entries = getattr(response, "context_data", None) or {}
        if not is_superuser(request):
            self._hide_strangers(request, [entry.user for entry in entries.get("action_list", ())])
        return response

    def _hide_strangers(self, request: HttpRequest, users: list[User]) -> None:
        """Leaves the name to home, and the e-mail to organisations that have them as a member.

        Superusers', who belong to none, is shown to all whose objects they change.
        """
        reached = self.admin_site.get_model_admin(User).get_queryset(request)
        found = reached.filter(pk__in={user.pk for user in users})
        is_own = dict(found.values_list("pk", "is_own"))
        for user in users:
            if not is_own.get(user.pk):
                user.name = ""
            if user.pk not in is_own and not user.is_superuser:
                user.email = NOT_A_MEMBER

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


class ReadOnlyTenantModelAdmin(TenantModelAdmin):
    """Pages to look at. What may still be done to a row is an action."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class TenantInline(_TenantChoices, TabularInline):
    """Rows inside another row's page, whose own page has checked the person's reach."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_administrator(request)
