"""Query parameters of the admin: pages accept only those that they offer; lists have a last page.

Django passes parameters that no filter of a list has taken to the ORM, which follows every relation
from a row. Anyone who can see the list could then ask "Is there a row whose user's password hash
starts with a?"
"""

from functools import cache, cached_property
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import (
    ALL_VAR,
    ERROR_FLAG,
    ORDER_VAR,
    PAGE_VAR,
    SEARCH_VAR,
    ChangeList,
)
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse


class CappedPaginator(Paginator[Any]):
    """Counts and pages through at most ``ADMIN_MAX_COUNTED`` rows.

    The database reads every row of a count, and every row before a page. Search and filters reach
    the rest.
    """

    template_name = "admin/parts/pagination.html"

    @cached_property
    def _counted(self) -> int:
        """Count the rows; one more than ``ADMIN_MAX_COUNTED`` stands for any higher number."""
        rows: Any = self.object_list
        counted: int = rows[: settings.ADMIN_MAX_COUNTED + 1].count()
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

    def response_action(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """Refuse actions on all rows of a long list, since an action reads and changes each row."""
        is_of_all = request.POST.get("select_across", "0") != "0"
        most = settings.ADMIN_MAX_ACTED_ON
        if is_of_all and queryset.order_by()[: most + 1].count() > most:
            text = f"Nothing was changed: select at most {most:,}, or filter the list."
            self.message_user(request, text, messages.ERROR)
            return None
        response: HttpResponse | None = super().response_action(request, queryset)  # type: ignore[misc]
        return response

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Allow the primary key only. Django's own method raises for a reverse relation."""
        return bool(to_field == self.opts.pk.name)


def with_exact_parameters(admin_class: type[Any]) -> type[Any]:
    """Put the mixin before the class, so that the class cannot override it."""
    bases = (ExactParameters, admin_class)
    return type(admin_class.__name__, bases, {"__module__": admin_class.__module__})


class _ExactChangeList(ChangeList):
    @property
    def can_act_on_all(self) -> bool:
        return bool(self.result_count <= settings.ADMIN_MAX_ACTED_ON)

    def get_filters(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters, and no parameters for the ORM."""
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
