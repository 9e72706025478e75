"""The page on which a person approves or refuses a program's login (RFC 8628, 3.3 and 5.4)."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.admin import site
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.admin.reach import is_superuser, maker_of, person
from accounts.admin.step_up import proved
from accounts.flows.api_keys import revoke_api_keys
from accounts.holders import scopes_by_organisation
from accounts.models import ApiKey, Organisation
from accounts.scopes import MEANINGS, Scope, Scopes, covers, in_order, missing
from core.admin.flow_forms import RowChoiceField, add_errors
from core.admin.too_many_attempts import too_many_attempts
from core.database.ids import parse_uuid
from core.errors import ForbiddenError, RateLimitedError
from core.http.origin import client_address, origin_of
from core.plain_text import validate_plain_text
from sessions_api.device_authorization.flows import (
    approve_login,
    find_login,
    refuse_login,
    shown,
    typed_user_code,
)
from sessions_api.models import DeviceAuthorization
from sessions_api.models.device_authorization import MAX_KEY_NAME_LENGTH

# The page lists the newest.
_MAX_KEYS = 50
_TOO_MANY = "There were too many wrong codes, of yours or from your network."
_WRONG = (
    "No login waits under this code. It may be mistyped, older than ten minutes or already "
    "answered: start again in the program."
)


class CodeForm(forms.Form):
    user_code = forms.CharField(
        label="Code",
        max_length=40,
        widget=UnfoldAdminTextInputWidget(
            attrs={
                "autocomplete": "off",
                "autocapitalize": "characters",
                "spellcheck": "false",
                "placeholder": "WDJB-MJHT",
            }
        ),
        help_text="The eight letters that the program shows.",
    )


class OrganisationForm(forms.Form):
    organisation = RowChoiceField(
        Organisation.objects.none(),
        empty_label=None,
        widget=UnfoldAdminSelectWidget,
        help_text="The only organisation that the program can access.",
    )

    def __init__(self, *args: Any, organisations: QuerySet[Organisation], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["organisation"].queryset = organisations  # type: ignore[attr-defined]


class ApprovalForm(forms.Form):
    scopes = forms.MultipleChoiceField(
        label="May",
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        error_messages={"required": "Choose at least one, or refuse the login."},
    )
    days = forms.IntegerField(
        label="Expires after (days)",
        min_value=1,
        max_value=settings.DEVICE_KEY_MAX_DAYS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"1 to {settings.DEVICE_KEY_MAX_DAYS}. It ends earlier with your membership.",
    )
    key_name = forms.CharField(
        label="Name of its API key",
        max_length=MAX_KEY_NAME_LENGTH,
        validators=[validate_plain_text],
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
        help_text="Under this name it is listed, and can be revoked.",
    )

    def __init__(self, *args: Any, offered: Sequence[Scope], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["scopes"].choices = [  # type: ignore[attr-defined]
            (scope.value, _described(scope)) for scope in offered
        ]


def _described(scope: Scope) -> SafeString:
    return format_html('<b>{}</b> <span class="mh-quiet">{}</span>', scope.label, MEANINGS[scope])


def offered_scopes(asked: Scopes, held: Scopes) -> list[Scope]:
    """What the person may choose from: at most what was asked for, and what they have.

    If both are everything, also each single scope, to give less.
    """
    if Scope.ALL in asked and Scope.ALL in held:
        return list(Scope)
    return [scope for scope in Scope if covers(asked, [scope]) and covers(held, [scope])]


@require_http_methods(["GET", "HEAD", "POST"])
@proved
def device_page(request: HttpRequest) -> HttpResponse:
    """Asks for the code, then shows who asks for what, and takes the answer.

    A code in the address only fills the field: people who follow a link must still compare it.
    """
    if request.method != "POST":
        code = typed_user_code(request.GET.get("user_code", ""))
        initial = {"user_code": shown(code)} if code else None
        return _ask_for_code(request, CodeForm(initial=initial))
    if "revoke" in request.POST:
        return _revoke(request, request.POST["revoke"])
    return _look_up(request)


def _look_up(request: HttpRequest) -> HttpResponse:
    """The login of the code, with what was answered."""
    form = CodeForm(request.POST)
    if not form.is_valid():
        return _ask_for_code(request, form)
    try:
        row = find_login(person(request), form.cleaned_data["user_code"], origin_of(request))
    except RateLimitedError as limited:
        return too_many_attempts(request, limited, _TOO_MANY)
    if row is None:
        form.add_error("user_code", _WRONG)
        return _ask_for_code(request, form)
    try:
        return _answer(request, row, form.cleaned_data["user_code"])
    except ForbiddenError as refusal:
        messages.error(request, f"Nothing was approved. {refusal}")
        return redirect("admin:device")


def _answer(request: HttpRequest, row: DeviceAuthorization, code: str) -> HttpResponse:
    if "refuse" in request.POST:
        refuse_login(row, by=person(request), origin=origin_of(request))
        messages.success(request, "The login was refused. The program gets nothing.")
        return redirect("admin:device")
    organisations = _organisations(request)
    choice = OrganisationForm(
        request.POST if "organisation" in request.POST else None, organisations=organisations
    )
    chosen: Model | None = choice.cleaned_data["organisation"] if choice.is_valid() else None
    if not choice.is_bound:
        only = list(organisations[:2])
        chosen = only[0] if len(only) == 1 else None
    if not isinstance(chosen, Organisation):
        return _show(request, row, code, choice=choice if organisations.exists() else None)
    held = maker_of(request, chosen).scopes
    offered = offered_scopes(row.held_scopes, held)
    initial = {
        "scopes": [scope.value for scope in in_order(offered)],
        "days": settings.DEVICE_KEY_DAYS,
        "key_name": row.client_id,
    }
    form = ApprovalForm(
        request.POST if "approve" in request.POST else None, offered=offered, initial=initial
    )
    if form.is_bound and form.is_valid() and _is_approved(request, row, chosen, form):
        messages.success(
            request,
            f"Approved. Return to “{row.client_id}”: it logs in within seconds, and you get an "
            "e-mail. You can revoke its key on this page.",
        )
        return redirect("admin:device")
    lacking = missing(held, row.held_scopes)
    return _show(request, row, code, organisation=chosen, form=form, lacking=lacking)


def _is_approved(
    request: HttpRequest, row: DeviceAuthorization, organisation: Organisation, form: ApprovalForm
) -> bool:
    """Whether it was done; if not, the form has the reason."""
    try:
        approve_login(
            row,
            organisation=organisation,
            scopes=form.cleaned_data["scopes"],
            key_name=form.cleaned_data["key_name"],
            days=form.cleaned_data["days"],
            by=person(request),
            origin=origin_of(request),
        )
    except ValidationError as refusal:
        add_errors(form, refusal, {"name": "key_name"})
        return False
    return True


def _organisations(request: HttpRequest) -> QuerySet[Organisation]:
    """The active organisations where the person has any scope."""
    active = Organisation.objects.filter(is_active=True).order_by("name", "pk")
    if is_superuser(request):
        return active
    return active.filter(pk__in=list(scopes_by_organisation(person(request))))


def _ask_for_code(request: HttpRequest, form: CodeForm) -> HttpResponse:
    keys = _own_keys(request).select_related("organisation").order_by("-created_at")
    return _page(request, form=form, code_form=form, keys=keys[:_MAX_KEYS])


def _own_keys(request: HttpRequest) -> QuerySet[ApiKey]:
    """Those that the person approved and that are not revoked, whatever their role is now."""
    return ApiKey.objects.filter(approved_by=person(request), revoked_at=None)


def _revoke(request: HttpRequest, key_id: str) -> HttpResponse:
    """Revokes a key of the person's own; raises ``Http404`` for any other."""
    id_ = parse_uuid(key_id)
    api_key = None if id_ is None else _own_keys(request).filter(pk=id_).first()
    if api_key is None:
        raise Http404
    revoked = revoke_api_keys([api_key], origin=origin_of(request), by=person(request))
    messages.success(request, f"“{api_key.name}” is revoked. The program has no access any more.")
    if created := [str(each) for each in revoked if each.pk != api_key.pk]:
        names = ", ".join(sorted(created))
        messages.info(request, f"Keys that were created with it are revoked as well: {names}.")
    return redirect("admin:device")


def _show(
    request: HttpRequest,
    row: DeviceAuthorization,
    code: str,
    *,
    choice: OrganisationForm | None = None,
    organisation: Organisation | None = None,
    form: ApprovalForm | None = None,
    lacking: Sequence[Scope] = (),
) -> HttpResponse:
    return _page(
        request,
        login=row,
        code=shown(typed_user_code(code) or ""),
        is_same_address=row.client_address == (client_address(request) or None),
        own_address=client_address(request),
        choice=choice,
        organisation=organisation,
        form=form,
        lacking=", ".join(scope.label for scope in lacking),
    )


def _page(request: HttpRequest, **context: Any) -> HttpResponse:
    return TemplateResponse(
        request,
        "admin/device.html",
        {**site.each_context(request), "title": "Log a program in", **context},
    )
