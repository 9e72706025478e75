"""Confirmation pages for admin actions, which take effect only on a confirmed POST."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import forms
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.utils.http import url_has_allowed_host_and_scheme

NEXT = "next"
_CONFIRMED = "confirmed"


class Question(NamedTuple):
    title: str
    consequences: str
    button: str
    warning: str = ""


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


def next_address(request: HttpRequest, default: str) -> str:
    """Returns the address of the page that offered the action, if it is on this site."""
    address = request.POST.get(NEXT, "")
    is_ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if is_ours else default
