"""Deletion through a flow, which decides what is kept."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.admin.tenancy import TenantModelAdmin
from core.admin.confirmation import Question, ask, is_confirmed


class DeletedByFlowModelAdmin(TenantModelAdmin):
    """Asks ``delete_question``, then deletes one row or a selection through the flow."""

    delete_question: ClassVar[Question]
    delete_confirmation_template = "admin/confirmation.html"
    actions: ClassVar[Sequence[str]] = ("delete_selected_by_flow",)

    def delete_by_flow(self, request: HttpRequest, obj: Any) -> None:
        raise NotImplementedError

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.reaches(request, obj)

    def get_actions(self, request: HttpRequest) -> Any:
        # Django's own action would bypass the flow.
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    @admin.action(description="Delete selected", permissions=["delete"])
    def delete_selected_by_flow(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        if not is_confirmed(request):
            return ask(self, request, self.delete_question, queryset)
        rows = list(queryset)
        self.log_deletions(request, rows)
        for row in rows:
            self.delete_by_flow(request, row)
            self.message_user(request, f"Deleted {row}.", messages.SUCCESS)
        return None

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        context = {"question": self.delete_question, "objects": [row], **(extra_context or {})}
        context.setdefault("title", self.delete_question.title)
        response: HttpResponse = super().delete_view(request, object_id, context)
        return response

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Returns nothing: the flow deletes no other objects."""
        return [], {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_by_flow(request, obj)
