"""Deletion through a flow, which decides what is kept."""

import uuid
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.admin.tenancy import TenantModelAdmin
from accounts.models import Organisation
from core.admin.confirmation import Question, ask, is_confirmed
from core.admin.links import page_of


class DeletedByFlowModelAdmin(TenantModelAdmin):
    """Asks ``delete_question``, then deletes a row or a selection, all or nothing, by the flow."""

    delete_question: ClassVar[Question]
    delete_confirmation_template = "admin/confirmation.html"
    actions: ClassVar[Sequence[str]] = ("delete_selected_by_flow",)

    def delete_by_flow(
        self, request: HttpRequest, organisation: Organisation, rows: Sequence[Any]
    ) -> None:
        """Deletes rows of the organisation, in a transaction.

        May raise ``ValidationError``; then nothing is deleted, and the reason is shown.
        """
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
        rows = list(queryset)
        try:
            with transaction.atomic():
                self.log_deletions(request, rows)
                self._delete(request, rows)
        except ValidationError as refusal:
            self._show_refusal(request, rows, refusal)
            return None
        for row in rows:
            self.message_user(request, f"Deleted {row}.", messages.SUCCESS)
        return None

    def _delete(self, request: HttpRequest, rows: Iterable[Any]) -> None:
        places: dict[uuid.UUID, tuple[Organisation, list[Any]]] = {}
        for row in rows:
            place: Any = self.place_of(row)
            places.setdefault(place.pk, (place, []))[1].append(row)
        # Releases lock organisations: in one order, so that no two selections deadlock.
        for _, (place, of_place) in sorted(places.items(), key=itemgetter(0)):
            self.delete_by_flow(request, place, of_place)

    def _show_refusal(
        self, request: HttpRequest, rows: Sequence[Model], refusal: ValidationError
    ) -> None:
        told = f"{rows[0]} was not deleted." if len(rows) == 1 else "Nothing was deleted."
        why = " ".join(refusal.messages)
        self.message_user(request, f"{told} {why}", messages.ERROR)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        context = {"question": self.delete_question, "objects": [row], **(extra_context or {})}
        context.setdefault("title", self.delete_question.title)
        try:
            response: HttpResponse = super().delete_view(request, object_id, context)
        except ValidationError as refusal:
            self._show_refusal(request, [row], refusal)
            return HttpResponseRedirect(page_of(row))
        return response

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Returns nothing: the flow deletes no other objects."""
        return [], {}, set(), []

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._delete(request, [obj])
