"""Actions of admin pages: ask, take effect only on a confirmed POST, then log and report it."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme

from core.admin.links import page_of

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
