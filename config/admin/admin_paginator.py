"""How the admin's lists are counted and paged: exactly up to a number, and no further."""

from functools import cached_property
from typing import Any

from django.conf import settings
from django.core.paginator import Paginator


class CappedPaginator(Paginator[Any]):
    """Counts at most ``ADMIN_MAX_COUNTED`` rows, and pages through no others.

    A count costs the database every row that it counts, and a page all rows before it. What is
    beyond is reached by searching and filtering.
    """

    template_name = "admin/parts/pagination.html"

    @cached_property
    def _counted(self) -> int:
        """One more than ``ADMIN_MAX_COUNTED`` where there are more."""
        rows: Any = self.object_list
        counted: int = rows[: settings.ADMIN_MAX_COUNTED + 1].count()
        return counted

    @cached_property
    def count(self) -> int:
        return min(self._counted, settings.ADMIN_MAX_COUNTED)

    @property
    def is_capped(self) -> bool:
        """Whether there are more rows than can be paged through."""
        return self._counted > settings.ADMIN_MAX_COUNTED

    @property
    def count_in_words(self) -> str:
        return f"{self.count:,}+" if self.is_capped else f"{self.count:,}"
