"""Parameters of the admin: pages accept only those that they offer; lists have a last page.

Django passes parameters that no filter of a list has taken to the ORM, which follows every relation
from a row. Anyone who can see the list could then ask "Is there a row whose user's password hash
starts with a?" It also passes malformed ids to the ORM, which raises for them.
"""

from functools import cache, cached_property
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.contrib.admin.views.main import (
    ALL_VAR,
    ERROR_FLAG,
    ORDER_VAR,
    PAGE_VAR,
    SEARCH_VAR,
    ChangeList,
)
from django.core.exceptions import BadRequest, FieldDoesNotExist, PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db.models import ForeignKey, Model
from django.http import HttpRequest, HttpResponse
from unfold.contrib.filters.admin import TextFilter


class CappedPaginator(Paginator[Any]):
    """Counts and pages through at most ``ADMIN_MAX_COUNTED`` rows.

    The database reads every row of a count, and every row before a page. Search and filters reach
    the rest. A list may give its query ``counted_as``: two queries that are cheaper to count and
    whose difference it is.
    """

    template_name = "admin/parts/pagination.html"

    @cached_property
    def _counted(self) -> int:
        """Count the rows; one more than ``ADMIN_MAX_COUNTED`` stands for any higher number."""
        rows: Any = self.object_list
        most = settings.ADMIN_MAX_COUNTED + 1
        everything, left_out = getattr(rows, "counted_as", (rows, None))
        if left_out is not None:
            fewer: int = left_out.order_by()[:most].count()
            if fewer < most:
                return int(everything[: most + fewer].count()) - fewer
        counted: int = rows[:most].count()
        return counted

    @cached_property
    def count(self) -> int:
        return min(self._counted, settings.ADMIN_MAX_COUNTED)

    @property
    def is_capped(self) -> bool:
        """Whether there are more rows than the pages show."""
        return self._counted > settings.ADMIN_MAX_COUNTED

    @property
    def count_in_words(self) -> str:
        return f"{self.count:,}+" if self.is_capped else f"{self.count:,}"


# ERROR_FLAG marks Django's redirect from a filter with a malformed value.
_OF_EVERY_LIST = frozenset({SEARCH_VAR, ORDER_VAR, PAGE_VAR, ALL_VAR, ERROR_FLAG})


class ExactParameters:
    """Mixin for a model admin whose list accepts only the parameters of its filters, by exact name.

    The list also accepts a search, a page, and an order by the columns in ``sortable_by``: those
    with an index, or all if the list is short. Facets would count rows that the list does not, and
    a popup could show a column of the caller's choice.
    """

    opts: Any
    sortable_by: Any
    message_user: Any
    show_facets = ShowFacets.NEVER
    show_full_result_count = False
    paginator = CappedPaginator

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _exact(super().get_changelist(request, **kwargs))  # type: ignore[misc]

    def get_sortable_by(self, request: HttpRequest) -> Any:
        """Return the columns of ``sortable_by``; Django's default would be every column."""
        return self.sortable_by or ()

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return none for text with NUL: PostgreSQL raises for it.

        Django would look an empty name of a field up. A request that only reads looks a row up
        once: each of a page's lists of buttons asks for it.
        """
        if "\0" in object_id:
            return None
        only_reads = request.method in {"GET", "HEAD"}
        found: dict[Any, Model | None] = (
            vars(request).setdefault("rows_looked_up", {}) if only_reads else {}
        )
        key = (self, object_id, from_field or None)
        if key not in found:
            found[key] = super().get_object(request, *key[1:])  # type: ignore[misc]
        return found[key]

    def response_action(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Refuse malformed ids, and actions on all rows of a long list.

        An action reads and changes each row.
        """
        if not all(self._is_id(text) for text in request.POST.getlist(ACTION_CHECKBOX_NAME)):
            raise BadRequest("A selected id is malformed.")
        is_of_all = request.POST.get("select_across", "0") != "0"
        most = settings.ADMIN_MAX_ACTED_ON
        if is_of_all and queryset.order_by()[: most + 1].count() > most:
            text = f"Nothing was changed: select at most {most:,}, or filter the list."
            self.message_user(request, text, messages.ERROR)
            return None
        response: HttpResponse | None = super().response_action(request, queryset)  # type: ignore[misc]
        return response

    def _is_id(self, text: str) -> bool:
        """Whether the text can be a primary key; Django's own look-up raises if not."""
        try:
            self.opts.pk.to_python(text)
        except (ValidationError, ValueError):
            return False
        return "\0" not in text

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Allow the primary key only. Django's own method raises for a reverse relation."""
        return bool(to_field == self.opts.pk.name)


class ExactAutocomplete(AutocompleteJsonView):
    """Offers rows for foreign keys. Django's own view raises for other relations."""

    def process_request(self, request: HttpRequest) -> Any:
        app, model, field, term = [
            request.GET.get(name, "") for name in ("app_label", "model_name", "field_name", "term")
        ]
        try:
            source = apps.get_model(app, model)._meta.get_field(field)
        except (LookupError, FieldDoesNotExist):
            raise PermissionDenied from None
        if not isinstance(source, ForeignKey) or "\0" in term:
            raise PermissionDenied
        # The page whose form or filter asks: it has the scope, and the choice.
        site: Any = self.admin_site
        self.page: Any = site._registry.get(source.model)
        self.is_of_page = hasattr(self.page, "rows_to_choose")
        return super().process_request(request)

    def has_perm(self, request: HttpRequest, obj: Any = None) -> bool:
        if not self.is_of_page:
            return bool(super().has_perm(request, obj))
        return bool(self.page.has_view_permission(request))

    def get_queryset(self) -> Any:
        if not self.is_of_page:
            return super().get_queryset()
        rows = self.page.rows_to_choose(self.request, self.model_admin.model)
        limited = rows.complex_filter(self.source_field.get_limit_choices_to())
        found, has_doubles = self.model_admin.get_search_results(self.request, limited, self.term)
        return found.distinct() if has_doubles else found


def with_exact_parameters(admin_class: type[Any]) -> type[Any]:
    """Put the mixin before the class, so that the class cannot override it."""
    bases = (ExactParameters, admin_class)
    return type(admin_class.__name__, bases, {"__module__": admin_class.__module__})


class _ExactChangeList(ChangeList):
    @property
    def can_act_on_all(self) -> bool:
        return bool(self.result_count <= settings.ADMIN_MAX_ACTED_ON)

    def get_filters(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters, and no parameters for the ORM.

        PostgreSQL raises for text with NUL. The search and filters by typed text explain it.
        """
        if any(len(values) > 1 for _, values in request.GET.lists()):
            raise DisallowedModelAdminLookup("A parameter occurs twice.")
        if not self._is_order_offered(request.GET.get(ORDER_VAR, "")):
            raise DisallowedModelAdminLookup("The list cannot be ordered by that column.")
        try:
            specs, has_filters, _, may_have_duplicates, has_active = super().get_filters(request)
        except IncorrectLookupParameters as error:
            raise DisallowedModelAdminLookup("A parameter has an unknown value.") from error
        known = _OF_EVERY_LIST.union(*(spec.expected_parameters() for spec in specs))
        if not known.issuperset(request.GET):
            raise DisallowedModelAdminLookup("A parameter belongs to no filter of the list.")
        typed = {SEARCH_VAR}.union(
            *(spec.expected_parameters() for spec in specs if isinstance(spec, TextFilter))
        )
        if any("\0" in value for name, value in request.GET.items() if name not in typed):
            raise DisallowedModelAdminLookup("A parameter has an unknown value.")
        return specs, has_filters, {}, may_have_duplicates, has_active

    def _is_order_offered(self, order: str) -> bool:
        """Whether each column of an order like ``2.-1`` is sortable."""
        offered = {
            str(number)
            for number, column in enumerate(self.list_display)
            if column in (self.sortable_by or ())
        }
        return not order or all(part.removeprefix("-") in offered for part in order.split("."))


@cache
def _exact(changelist: type[ChangeList]) -> type[ChangeList]:
    return type(changelist.__name__, (_ExactChangeList, changelist), {})
