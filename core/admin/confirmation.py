"""Actions of admin pages: ask, take effect only on a confirmed POST, then log and report it.

Most of them end rows: revoke, withdraw, log out.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, ClassVar, NamedTuple

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import CHANGE, LogEntry
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme

from core.admin.links import list_of, page_of

NEXT = "next"
_CONFIRMED = "confirmed"


class Question(NamedTuple):
    """``variant`` is the button's: red unless what follows takes nothing away."""

    title: str
    consequences: str
    button: str
    warning: str = ""
    variant: str = "danger"


def is_confirmed(request: HttpRequest) -> bool:
    return request.method == "POST" and _CONFIRMED in request.POST


def ask(
    model_admin: ModelAdmin[Any],
    request: HttpRequest,
    question: Question,
    objects: Iterable[Any],
    form: forms.Form | None = None,
) -> TemplateResponse:
    """Returns the confirmation page, which repeats the request; ``form`` adds fields to it.

    Works for an object's action and, because it repeats the selection, for a list's action.
    The breadcrumbs name the object if it is the only one.
    """
    objects = list(objects)
    return TemplateResponse(
        request,
        "admin/confirmation.html",
        {
            **model_admin.admin_site.each_context(request),
            "opts": model_admin.opts,
            "original": objects[0] if len(objects) == 1 else None,
            "title": question.title,
            "question": question,
            "objects": objects,
            "form": form,
            "action": request.POST.get("action", ""),
            "checkbox_name": ACTION_CHECKBOX_NAME,
            "next": request.GET.get(NEXT, ""),
        },
    )


def done(
    model_admin: ModelAdmin[Any], request: HttpRequest, row: Any, logged: str, told: str
) -> HttpResponseRedirect:
    """Logs and reports a row's action that succeeded; returns to the row's page."""
    model_admin.log_change(request, row, logged)
    model_admin.message_user(request, told, messages.SUCCESS)
    return redirect(page_of(row))


def confirmed(
    question: Question, *, logged: str, told: str
) -> Callable[[Callable[..., HttpResponse | None]], Callable[..., HttpResponse]]:
    """Decorator for an action of a row's page that asks first, and is logged and reported.

    The decorated method takes the request and the row, and calls a flow. A response that it returns
    is the answer, such as a page that refuses. ``told`` is a template with ``{row}``.
    """

    def decorate(act: Callable[..., HttpResponse | None]) -> Callable[..., HttpResponse]:
        @wraps(act)
        def ask_and_act(model_admin: Any, request: HttpRequest, object_id: str) -> HttpResponse:
            row = model_admin.get_or_404(request, object_id)
            if not is_confirmed(request):
                return ask(model_admin, request, question, [row])
            refusal = act(model_admin, request, row)
            return refusal or done(model_admin, request, row, logged, told.format(row=row))

        return ask_and_act

    return decorate


def next_address(request: HttpRequest, default: str) -> str:
    """Returns the address of the page that offered the action, if it is on this site."""
    address = request.POST.get(NEXT, "")
    is_ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_ours else default


class EndingMixin:
    """Mixin for model admins whose rows can be ended: revoked, withdrawn, logged out.

    The subclass declares a button that calls ``ask_and_end_one``, a list action that calls
    ``ask_and_end_selected``, and the texts, and calls its flow in ``end_rows``. Button and action
    require the permission ``end``: the subclass's ``may_change``, for a row that is live.
    """

    end_question: ClassVar[Question]
    ended_word: ClassVar[str]
    """A past participle, such as “revoked”, for messages and the history."""
    ending_deletes: ClassVar[bool] = False

    def end_rows(self, request: HttpRequest, rows: Iterable[Any]) -> Sequence[Any]:
        """Ends the rows and returns those that were not ended already."""
        raise NotImplementedError

    def is_live(self, row: Any) -> bool:
        """Whether the row can still be ended."""
        return True

    def ended_name(self, row: Any) -> str:
        """The row's name in the message after it alone was ended."""
        return str(row)

    def has_end_permission(self: Any, request: HttpRequest, object_id: str | None = None) -> bool:
        """Whether the person may end this row, or, without an id, use the list action."""
        if object_id is None:
            return bool(self.may_change(request))
        row = self.get_object(request, object_id)
        return row is not None and self.is_live(row) and bool(self.may_change(request, row))

    def ask_and_end_one(self: Any, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_or_404(request, object_id)
        default = list_of(self.model) if self.ending_deletes else page_of(row)
        return self.ask_and_end(request, [row], next_address(request, default))

    def ask_and_end_selected(self: Any, request: HttpRequest, rows: Iterable[Any]) -> HttpResponse:
        return self.ask_and_end(request, rows, request.get_full_path())

    def ask_and_end(
        self: Any,
        request: HttpRequest,
        rows: Iterable[Any],
        back_to: str,
        question: Question | None = None,
    ) -> HttpResponse:
        """The question or, once it is confirmed, a redirect after ending the rows."""
        if not is_confirmed(request):
            return ask(self, request, question or self.end_question, rows)
        ended = self.end_rows(request, rows)
        self._log_ended(request, ended)
        self.message_user(request, self._ended_message(ended), messages.SUCCESS)
        return redirect(back_to)

    def _log_ended(self: Any, request: HttpRequest, ended: Sequence[Any]) -> None:
        if self.ending_deletes:
            self.log_deletions(request, ended)
        else:
            by: Any = request.user.pk
            LogEntry.objects.log_actions(by, ended, CHANGE, f"{self.ended_word.capitalize()}.")

    def _ended_message(self: Any, ended: Sequence[Any]) -> str:
        if len(ended) == 1:
            return f"{self.ended_name(ended[0])} was {self.ended_word}."
        return f"{len(ended)} {self.opts.verbose_name_plural} were {self.ended_word}."
