"""The page on which people who reach several organisations choose the one that they look at."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import site
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.admin.reach import (
    has_any_scope,
    is_superuser,
    look_at,
    organisation_ids,
    organisation_in_view,
)
from accounts.models import Organisation

_SHOWN = 50


class _SearchForm(forms.Form):
    q = forms.CharField(
        required=False,
        max_length=100,
        label="Name",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


def can_switch(request: HttpRequest) -> bool:
    """Whether the person reaches more than one organisation, as far as is known without a query."""
    return has_any_scope(request) and (is_superuser(request) or len(organisation_ids(request)) > 1)


def organisation_switch(request: HttpRequest) -> HttpResponse:
    """Lists the organisations within reach; a POST with an ``organisation``, or an empty one for
    all, looks at it and redirects to home.
    """
    if not can_switch(request):
        raise PermissionDenied
    reached = _within_reach(request)
    if request.method == "POST":
        return _switch(request, reached)
    search = _SearchForm(request.GET or None)
    term = search.cleaned_data["q"].strip() if search.is_valid() else ""
    found = reached.filter(name__icontains=term) if term else reached
    shown = list(found.order_by("name").only("pk", "name")[: _SHOWN + 1])
    return TemplateResponse(
        request,
        "admin/organisation_switch.html",
        {
            **site.each_context(request),
            "title": "Organisation in view",
            "search": search,
            "term": term,
            "organisations": shown[:_SHOWN],
            "has_more": len(shown) > _SHOWN,
            "in_view": organisation_in_view(request),
        },
    )


class _Choice(forms.Form):
    organisation = forms.ModelChoiceField(Organisation.objects.none(), required=False)

    def __init__(self, reached: QuerySet[Organisation], *args: Any) -> None:
        super().__init__(*args)
        self.fields["organisation"].queryset = reached  # type: ignore[attr-defined]


def _switch(request: HttpRequest, reached: QuerySet[Organisation]) -> HttpResponse:
    choice = _Choice(reached, request.POST)
    if not choice.is_valid():
        messages.error(request, "There is no such organisation. Nothing was changed.")
        return redirect("admin:organisation_switch")
    look_at(request, choice.cleaned_data["organisation"])
    return redirect("admin:index")


def _within_reach(request: HttpRequest) -> QuerySet[Organisation]:
    if is_superuser(request):
        return Organisation.objects.all()
    return Organisation.objects.filter(pk__in=organisation_ids(request))
