"""Deletion through a flow, which decides what is kept."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.admin.tenancy import TenantModelAdmin
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.links import page_of


class DeletedByFlowModelAdmin(TenantModelAdmin):
    """Asks ``delete_question``, then deletes one row or all of a selection through the flow."""

    delete_question: ClassVar[Question]
    delete_confirmation_template = "admin/confirmation.html"
    actions: ClassVar[Sequence[str]] = ("delete_selected_by_flow",)

    def delete_by_flow(self, request: HttpRequest, obj: Any) -> None:
        """May raise ``ValidationError``; then nothing is deleted, and the reason is shown."""
        raise NotImplementedError

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return self.may_change(request, obj)

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
        deleted, refused = [], []
        # A refusal for want of scope deletes none.
        with transaction.atomic():
            for row in list(queryset):
                try:
                    with transaction.atomic():
                        self.log_deletions(request, [row])
                        self.delete_by_flow(request, row)
                except ValidationError as refusal:
                    refused.append((row, refusal))
                else:
                    deleted.append(row)
        for row in deleted:
            self.message_user(request, f"Deleted {row}.", messages.SUCCESS)
        for row, why in refused:
            self._show_refusal(request, row, why)
        return None

    def _show_refusal(self, request: HttpRequest, row: Model, refusal: ValidationError) -> None:
        why = " ".join(refusal.messages)
        self.message_user(request, f"{row} was not deleted. {why}", messages.ERROR)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        context = {"question": self.delete_question, "objects": [row], **(extra_context or {})}
        context.setdefault("title", self.delete_question.title)
        try:
            response: HttpResponse = super().delete_view(request, object_id, context)
        except ValidationError as refusal:
            self._show_refusal(request, row, refusal)
            return HttpResponseRedirect(page_of(row))
        return response

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Returns nothing: the flow deletes no other objects."""
        return [], {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_by_flow(request, obj)
