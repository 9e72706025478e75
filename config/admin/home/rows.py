from typing import Any

from django.contrib.admin import AdminSite
from django.db.models import Model
from django.http import HttpRequest


def rows_of(request: HttpRequest, site: AdminSite, model: type[Model]) -> Any:
    """The model's own query set of what its page would show to this person."""
    return site.get_model_admin(model).get_queryset(request)
