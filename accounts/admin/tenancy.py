"""Tenant isolation in the admin: the base classes of all model admins.

Django's permissions and groups are not used. Lists, forms, choices, autocompletes and typed URLs
show only rows within the person's reach (``accounts.admin.reach``). Each page states what can be
done there; the default is to add and to change.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.db.models import ForeignKey, Model, QuerySet
from django.forms import Field, ModelChoiceField
from django.http import Http404, HttpRequest, HttpResponse
from unfold.admin import ModelAdmin, TabularInline

from accounts.admin.reach import (
    RoleNeededError,
    has_any_scope,
    has_scope,
    is_superuser,
    organisation_ids_with,
    organisation_in_view,
    organisations_with,
    reaches_all,
)
from accounts.models import Organisation, User
from accounts.scopes import Scope
from core.admin.display import EmptyState
from core.admin.flow_forms import RowChoiceField, SavedByFlow
from core.admin.panels import panels_of
from core.database.ids import parse_uuid

_SAFE_METHODS = ("GET", "HEAD")
_FORMER_MEMBER = "A former member"


class _TenantChoices:
    """Mixin whose foreign keys offer only rows within reach, without add and change shortcuts.

    ``help_texts`` and ``labels`` replace those of the model's fields in forms: the meaning, the
    unit, an example, the effect of a change. The models' own serve the GraphQL documentation.
    """

    admin_site: Any
    change_scope: ClassVar[Scope]
    help_texts: ClassVar[Mapping[str, str]] = {}
    labels: ClassVar[Mapping[str, str]] = {}

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Model] | None:
        model = db_field.remote_field.model
        if model is Organisation:
            kwargs["queryset"] = organisations_with(request, self.change_scope)
        else:
            other = self.admin_site.get_model_admin(model)
            kwargs["queryset"] = other.rows_with(request, self.change_scope)
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


class TenantModelAdmin(SavedByFlow, _TenantChoices, ModelAdmin):
    """Model admin for rows of an organisation.

    ``organisation_path`` is the look-up from a row to its organisation.
    """

    organisation_path = "organisation"
    # What a role needs to see the pages, and to add and change rows there.
    view_scope: ClassVar[Scope] = Scope.ALL
    change_scope: ClassVar[Scope] = Scope.ALL
    # Those of other pages, by the end of their URL's name, and of list actions. What is in neither
    # is refused to all but administrators.
    page_scopes: ClassVar[Mapping[str, Scope]] = {}
    action_scopes: ClassVar[Mapping[str, Scope]] = {}
    # Pages, by the end of their URL's name, and list actions that ask for a fresh proof.
    proved_pages: ClassVar[frozenset[str]] = frozenset()
    proved_actions: ClassVar[frozenset[str]] = frozenset()
    empty_state: ClassVar[EmptyState | None] = None
    change_form_outer_after_template = "admin/panels.html"
    list_per_page = 50

    def within_reach(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that the page shows to those who do not reach all."""
        ids = organisation_ids_with(request, self.view_scope)
        return rows.filter(**{f"{self.organisation_path}__in": ids})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows if reaches_all(request) else self.within_reach(request, rows)

    def rows_with(self, request: HttpRequest, scope: Scope) -> QuerySet[Any]:
        """Those of the visible rows in whose organisation the person has the scope."""
        rows = self.get_queryset(request)
        if self.has_wherever_visible(request, scope):
            return rows
        ids = organisation_ids_with(request, scope)
        return rows.filter(**{f"{self.organisation_path}__in": ids})

    def rows_to_choose(self, request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
        """The rows of another model that filters and autocompletes of this page offer."""
        if model is Organisation:
            return organisations_with(request, self.view_scope)
        rows: QuerySet[Any] = self.admin_site.get_model_admin(model).get_queryset(request)
        return rows

    def has_wherever_visible(self, request: HttpRequest, scope: Scope) -> bool:
        """Whether the person has the scope in all organisations whose rows the pages show."""
        if is_superuser(request):
            return True
        visible = organisation_ids_with(request, self.view_scope)
        return set(visible).issubset(organisation_ids_with(request, scope))

    def place_of(self, row: Any) -> Organisation | None:
        """The organisation of the row, whose roles count."""
        place = row
        for part in self.organisation_path.split("__"):
            place = getattr(place, part)
        found: Organisation | None = place
        return found

    def allows(self, request: HttpRequest, scope: Scope, row: Any = None) -> bool:
        """Whether the person has the scope for the row; without one, anywhere."""
        if not self.opens(request, scope):
            return False
        if row is None or self.has_wherever_visible(request, scope):
            return True
        return has_scope(request, scope, self.place_of(row))

    def require(self, request: HttpRequest, scope: Scope, object_id: str | None = None) -> None:
        """Raises ``RoleNeededError`` without the scope in the organisation of a visible row."""
        if not self.opens(request, scope):
            raise RoleNeededError(scope)
        if object_id is None or self.has_wherever_visible(request, scope):
            return
        row = self.get_object(request, unquote(object_id))
        if row is not None and not self.allows(request, scope, row):
            raise RoleNeededError(scope, place=self.place_of(row))

    def scope_of_page(self, page: str) -> Scope | None:
        """What the page needs; ``None`` if no table names it."""
        named = {
            "changelist": self.view_scope,
            "change": self.view_scope,
            "history": self.view_scope,
            "add": self.change_scope,
            "delete": self.change_scope,
        }
        return self.page_scopes.get(page) or named.get(page)

    def scope_of_action(self, name: str) -> Scope | None:
        return self.change_scope if name == "delete_selected" else self.action_scopes.get(name)

    def reaches(self, request: HttpRequest, obj: Model | None) -> bool:
        """Whether the row is within the person's reach; without a row, whether any may be."""
        if not self.opens(request, self.view_scope):
            return False
        if obj is None or is_superuser(request):
            return True
        if request.method not in _SAFE_METHODS:
            # What the request changes may move the row out of reach.
            return self._finds(request, obj)
        # A page asks this for each of its buttons and forms.
        found: dict[tuple[Any, Any], bool] = request.__dict__.setdefault("_reached_rows", {})
        key = type(self), obj.pk
        if key not in found:
            found[key] = self._finds(request, obj)
        return found[key]

    def _finds(self, request: HttpRequest, obj: Model) -> bool:
        return self.get_queryset(request).filter(pk=obj.pk).exists()

    def may_change(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whether the person may change, end or delete the row; without a row, whether any."""
        return self.allows(request, self.change_scope, obj) and self.reaches(request, obj)

    def opens(self, request: HttpRequest, scope: Scope) -> bool:
        """Whether the person may use the admin, and has the scope in any organisation."""
        return has_any_scope(request) and has_scope(request, scope)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.opens(request, self.view_scope)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.reaches(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.opens(request, self.change_scope)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_change(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Names read-only fields as the form does for those who can change them."""
        kwargs["labels"] = {**self.labels, **kwargs.get("labels", {})}
        return super().get_form(request, *args, **kwargs)

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

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Values from the query string, and the organisation in view or the person's only one."""
        typed: dict[str, Any] = super().get_changeform_initial_data(request)
        initial = {name: value for name, value in typed.items() if self._is_initial(name, value)}
        places = organisations_with(request, self.change_scope)
        if in_view := organisation_in_view(request):
            places = places.filter(pk=in_view.pk)
        sole = list(places.values_list("pk", flat=True)[:2])
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
        context["panels"] = [] if obj is None else panels_of(request, obj, self.shows)
        context["can"] = {
            scope.name.lower(): self.allows(request, scope, obj)
            for scope in Scope
            if scope is not Scope.ALL
        }
        response: HttpResponse = super().render_change_form(
            request, context, add, change, form_url, obj
        )
        return response

    def shows(self, request: HttpRequest, scope: str, obj: Model) -> bool:
        """Whether the page of the row shows a panel or a link that needs the scope."""
        return self.allows(request, Scope(scope), obj)


class ReadOnlyTenantModelAdmin(TenantModelAdmin):
    """Read-only pages; changes are made through actions."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class TenantInline(_TenantChoices, TabularInline):
    """Rows on the page of another row, which has checked the person's reach."""

    view_scope: ClassVar[Scope] = Scope.ALL
    change_scope: ClassVar[Scope] = Scope.ALL

    def place_of(self, obj: Model | None) -> Model | None:
        """Where the person needs the scopes: in the organisation of the page's row."""
        return obj

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return has_scope(request, self.view_scope, self.place_of(obj))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return has_scope(request, self.change_scope, self.place_of(obj))

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return has_scope(request, self.change_scope, self.place_of(obj))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return has_scope(request, self.change_scope, self.place_of(obj))
