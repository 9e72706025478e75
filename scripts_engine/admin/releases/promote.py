"""Promotes scripts from one organisation to another: choose, see the plan, apply it."""

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from accounts.admin.reach import (
    RoleNeededError,
    is_superuser,
    maker_of,
    organisation_ids_with,
    person,
)
from accounts.admin.tenancy import TenantModelAdmin
from accounts.models import Organisation
from accounts.scopes import MissingScopeError
from core.admin.confirmation import is_confirmed
from core.admin.display import action
from core.admin.flow_forms import add_errors
from core.admin.links import action_of, list_of, page_of
from core.database.ids import parse_uuid
from core.errors import ConflictError, NotFoundError
from core.http.bulkhead import place_left_to_others
from core.http.origin import origin_of
from scripts_engine.admin.differences import difference_of
from scripts_engine.admin.releases.issued import keep_issued
from scripts_engine.admin.releases.words import MAX_SHOWN, NoteForm, ShownChange, title_of
from scripts_engine.models import Action, Plan, Script, Secret
from scripts_engine.plans.applying import Applied, apply_plan
from scripts_engine.plans.differences import shown_changes
from scripts_engine.plans.promoting import NEEDED, plan_promotion
from scripts_engine.runs.spec import Author

_TOO_FEW = (
    "Promoting moves scripts from one organisation to another, such as from staging to "
    "production. It takes the role Author or Administrator in both; you have it in {count}."
)


def organisations_of_author(request: HttpRequest) -> QuerySet[Organisation]:
    """Those where the person may do all that promoting takes."""
    if is_superuser(request):
        return Organisation.objects.order_by("name")
    ids = set.intersection(*(set(organisation_ids_with(request, scope)) for scope in NEEDED))
    return Organisation.objects.filter(pk__in=ids).order_by("name")


class PlacesForm(forms.Form):
    """From where to where."""

    source = forms.ModelChoiceField(Organisation.objects.none(), label="From")
    target = forms.ModelChoiceField(Organisation.objects.none(), label="To")

    def __init__(self, data: Any, places: QuerySet[Organisation]) -> None:
        super().__init__(data)
        for field in self.fields.values():
            field.queryset = places  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("source") is not None and data.get("source") == data.get("target"):
            raise ValidationError({"target": "Choose another organisation."})
        return data


class ScriptsForm(forms.Form):
    """Which of the organisation's live scripts and libraries."""

    scripts = forms.MultipleChoiceField(
        error_messages={"required": "Choose at least one script."},
    )

    def __init__(self, data: Any, source: Organisation) -> None:
        super().__init__(data)
        live = Script.objects.of_organisation(source).filter(current_version__isnull=False)
        self.live = list(live.order_by("is_library", "name_key").only("name", "is_library"))
        choices = [(script.name, script.name) for script in self.live]
        self.fields["scripts"].choices = choices  # type: ignore[attr-defined]

    @property
    def chosen(self) -> list[str]:
        return self.data.getlist("scripts") if self.is_bound else []  # type: ignore[attr-defined]


class PromotePages(TenantModelAdmin):
    def get_urls(self) -> list[URLPattern]:
        plan = path(
            "plan/<path:plan_id>/",
            self.admin_site.admin_view(self.plan_view),
            name="scripts_engine_release_plan",
        )
        return [plan, *super().get_urls()]

    @action(description="Promote", icon="move_up")
    def promote(self, request: HttpRequest) -> HttpResponse:
        """Asks from where to where, then for the scripts; makes the plan on POST."""
        places = organisations_of_author(request)
        names = request.POST if request.method == "POST" else request.GET
        form = PlacesForm(names if "source" in names else None, places)
        scripts = None
        if form.is_valid():
            is_posted = request.method == "POST"
            scripts = ScriptsForm(request.POST if is_posted else None, form.cleaned_data["source"])
            if is_posted and scripts.is_valid():
                plan = self._planned(request, form, scripts)
                if plan is not None:
                    return redirect(reverse("admin:scripts_engine_release_plan", args=[plan.pk]))
        count = places.count()
        return self._promote_page(
            request,
            "admin/promote.html",
            title="Promote",
            form=form,
            chosen=scripts,
            too_few=_TOO_FEW.format(count=count or "none") if count < len(form.fields) else "",
        )

    def _planned(self, request: HttpRequest, form: PlacesForm, scripts: ScriptsForm) -> Plan | None:
        """The plan; ``None`` if the forms have the reason why there is none."""
        try:
            # A slot of the sandbox limits the check of the sources instead.
            with place_left_to_others(request):
                return plan_promotion(
                    form.cleaned_data["source"],
                    form.cleaned_data["target"],
                    user=person(request),
                    names=scripts.cleaned_data["scripts"],
                )
        except MissingScopeError as lacking:
            raise RoleNeededError.beyond(lacking, form.cleaned_data["target"]) from None
        except NotFoundError as error:
            form.add_error(None, str(error))
        except ValidationError as refusal:
            add_errors(form, refusal)
        return None

    def plan_view(self, request: HttpRequest, plan_id: str) -> HttpResponse:
        """Shows the plan, and applies it after the confirmation."""
        plan_key = parse_uuid(plan_id)
        plans = Plan.objects.living().filter(organisation__in=organisations_of_author(request))
        plan = None if plan_key is None else plans.filter(pk=plan_key).first()
        if plan is None:
            return self._promote_page(
                request, "admin/plan_ended.html", HTTPStatus.NOT_FOUND, title="No such plan"
            )
        form = NoteForm(request.POST if is_confirmed(request) else None)
        if form.is_valid() and (applied := self._applied(request, plan, form)) is not None:
            return self._after(request, plan, applied)
        changes = [each for each in shown_changes(plan) if each.action != Action.NONE]
        return self._promote_page(
            request,
            "admin/plan.html",
            title=f"Plan for {plan.organisation}",
            plan=plan,
            form=form,
            changes=[
                ShownChange(
                    title_of(each.kind, each.name, each.action),
                    difference_of(each.difference),
                    note="Changed since the plan was made." if each.difference is None else "",
                )
                for each in changes[:MAX_SHOWN]
            ],
            more_changes=max(0, len(changes) - MAX_SHOWN),
            secrets=[
                (name, list_of(Secret, "add", organisation=plan.organisation_id, name=name))
                for name in plan.secrets_missing
            ],
        )

    def _applied(self, request: HttpRequest, plan: Plan, form: NoteForm) -> Applied | None:
        """What came of the plan; ``None`` if the form has the reason why nothing did."""
        try:
            return apply_plan(
                plan.organisation,
                plan.pk,
                held=maker_of(request, plan.organisation).scopes,
                author=Author(user=person(request)),
                origin=origin_of(request),
                note=form.cleaned_data["note"],
            )
        except MissingScopeError as lacking:
            raise RoleNeededError.beyond(lacking, plan.organisation) from None
        except (ConflictError, NotFoundError) as refusal:
            form.add_error(None, str(refusal))
        except ValidationError as refusal:
            add_errors(form, refusal)
        return None

    def _after(self, request: HttpRequest, plan: Plan, applied: Applied) -> HttpResponse:
        release = applied.release
        if release is None:
            told = f"Nothing had to change in {plan.organisation}."
            self.message_user(request, told, messages.INFO)
            return redirect(list_of(self.model))
        told = f"Applied to {plan.organisation}, as {str(release).lower()}."
        self.message_user(request, told, messages.SUCCESS)
        if applied.issued:
            keep_issued(request, release, applied.issued)
            return redirect(action_of(release, "issued"))
        return redirect(page_of(release))

    def _promote_page(
        self,
        request: HttpRequest,
        template: str,
        status: HTTPStatus = HTTPStatus.OK,
        **context: Any,
    ) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, template, shown, status=status)
