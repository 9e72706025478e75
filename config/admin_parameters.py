"""Pages in the admin take the parameters that they offer, and refuse every other.

Django passes what no filter of a list has taken to the ORM, which follows every relation from a
row: "Is there a row whose user's password hash begins with a?" would be answered to anybody who
sees the list.
"""

from functools import cache
from typing import Any

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
from django.http import HttpRequest

# The last marks Django's redirect from a filter whose value is malformed.
_OF_EVERY_LIST = frozenset({SEARCH_VAR, ORDER_VAR, PAGE_VAR, ALL_VAR, ERROR_FLAG})


class ExactParameters:
    """Mixin for a model admin whose list takes its filters' own parameters, by exact name.

    The list also takes its search, order and page. Facets would count rows that the list leaves
    uncounted, and a popup could show a column of the caller's choice.
    """

    opts: Any
    show_facets = ShowFacets.NEVER

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _exact(super().get_changelist(request, **kwargs))  # type: ignore[misc]

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Only the primary key names a row. Django's own answer raises for a reverse relation."""
        return bool(to_field == self.opts.pk.name)


def with_exact_parameters(admin_class: type[Any]) -> type[Any]:
    """Compose the mixin in front of the class, so that none of its own overrides evades it."""
    bases = (ExactParameters, admin_class)
    return type(admin_class.__name__, bases, {"__module__": admin_class.__module__})


class _ExactChangeList(ChangeList):
    def get_filters(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters, and nothing left over for the ORM."""
        try:
            specs, has_filters, _, may_have_duplicates, has_active = super().get_filters(request)
        except IncorrectLookupParameters as error:
            raise DisallowedModelAdminLookup("A parameter names nothing.") from error
        known = _OF_EVERY_LIST.union(*(spec.expected_parameters() for spec in specs))
        if not known.issuperset(request.GET):
            raise DisallowedModelAdminLookup("A parameter belongs to no filter of the list.")
        return specs, has_filters, {}, may_have_duplicates, has_active


@cache
def _exact(changelist: type[ChangeList]) -> type[ChangeList]:
    return type(changelist.__name__, (_ExactChangeList, changelist), {})
