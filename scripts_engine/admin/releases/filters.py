"""Filters of the list of releases: by person or key, and by script."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import DropdownFilter

from core.admin.filters import PeriodFilter
from core.database.ids import parse_uuid
from scripts_engine.models import Script

# A list box holds no more.
MAX_OFFERED = 500


class LateChoices(DropdownFilter):
    """Reads its choices when the list is shown, after the parameters of the address were judged."""

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        self._asked = (request, model_admin)
        super().__init__(request, params, model, model_admin)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return []

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        raise NotImplementedError

    def has_output(self) -> bool:
        # A link from a deleted script has a filter too.
        return True

    def choices(self, changelist: Any) -> Any:
        self.lookup_choices = self.offered(*self._asked)
        return super().choices(changelist)


class ActorFilter(LateChoices):
    """Filters by who released, as the list names them."""

    title = "person or key"
    parameter_name = "by"

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = model_admin.get_queryset(request).order_by("actor_label")
        labels = rows.values_list("actor_label", flat=True).distinct()[:MAX_OFFERED]
        return [(label, label) for label in labels]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        label = self.value()
        return queryset.filter(actor_label=label) if label else queryset


class ChangedScriptFilter(LateChoices):
    """Filters by a script that was changed, or whose hooks or schedules were; also a deleted one.

    Only releases within reach are filtered, so ids of other organisations find nothing.
    """

    title = "script"
    parameter_name = "script"

    def offered(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        scripts = model_admin.rows_to_choose(request, Script).order_by("name")
        named = scripts.values_list("pk", "name")[:MAX_OFFERED]
        return [(str(script_id), name) for script_id, name in named]

    def queryset(self, request: HttpRequest, queryset: Any) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        script_id = parse_uuid(value)
        return queryset.none() if script_id is None else queryset.changing_script(script_id)


class ReleaseTimeFilter(PeriodFilter):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.title = "time (UTC)"
