"""The admin site: Unfold's, for staff who have passed both factors."""

from functools import partial
from typing import Any
from urllib.parse import quote

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, re_path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_safe
from unfold.sites import UnfoldAdminSite

from config.admin.guards import with_guards
from config.admin.parameters import ExactAutocomplete, with_exact_parameters
from config.admin.requests import View, bounded
from core.admin.times import with_relative_times

# The site loads before the models, so modules that need models are imported where they are used.


# Where lists went whose models moved to another app: people keep their addresses.
_MOVED = {
    "scripts_engine/hook": "hooks/hook",
    "scripts_engine/refusedcall": "hooks/refusedcall",
    "scripts_engine/queueentry": "jobs/queueentry",
    "scripts_engine/schedule": "jobs/schedule",
    "django_tasks_database/dbtaskresult": "jobs/message",
}


@require_safe
def moved(request: HttpRequest, former: str, rest: str) -> HttpResponse:
    """Redirects to the page's present address, which asks for the login."""
    address = f"{reverse('admin:index')}{_MOVED[former]}/{quote(rest)}"
    query = request.META["QUERY_STRING"]
    return redirect(f"{address}?{query}" if query else address, permanent=True)


class MoonhookAdminSite(UnfoldAdminSite):
    """Unfold's site with two factors, bounded pages and exact parameters."""

    index_title = "Home"
    index_template = "admin/home.html"

    def register(
        self, model_or_iterable: Any, admin_class: type[Any] | None = None, **options: Any
    ) -> None:
        """Register models, of libraries too, with guarded pages and exact parameters.

        Their lists show relative times.
        """
        guarded = with_guards(with_exact_parameters(admin_class or ModelAdmin))
        super().register(model_or_iterable, with_relative_times(guarded), **options)

    def has_permission(self, request: HttpRequest) -> bool:
        from config.admin.login import is_second_factor_met  # noqa: PLC0415

        return bool(super().has_permission(request)) and is_second_factor_met(request)

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        """Bound every page, except cacheable ones: they are scripts, the same for everyone."""
        admin_view: View = super().admin_view(view if cacheable else bounded(view), cacheable)
        return admin_view

    def get_urls(self) -> list[URLPattern]:
        from config.admin.installation import installation  # noqa: PLC0415
        from config.admin.login_code import code_page  # noqa: PLC0415
        from config.admin.message_delivery import message_delivery  # noqa: PLC0415
        from config.admin.organisation_switch import organisation_switch  # noqa: PLC0415
        from config.admin.own_login import own_login  # noqa: PLC0415
        from config.admin.passwords import forgot_password, password_link  # noqa: PLC0415
        from config.admin.second_factor import recovery_codes, second_factor  # noqa: PLC0415
        from config.admin.step_up import step_up  # noqa: PLC0415
        from sessions_api.device_authorization.admin import device_page  # noqa: PLC0415

        return [
            path("step_up/", never_cache(csrf_protect(step_up)), name="step_up"),
            path("login/code/", never_cache(csrf_protect(code_page)), name="login_code"),
            path(
                "password/forgot/",
                never_cache(csrf_protect(forgot_password)),
                name="forgot_password",
            ),
            path("password/link/", never_cache(csrf_protect(password_link)), name="password_link"),
            path("second_factor/", never_cache(csrf_protect(second_factor)), name="second_factor"),
            path(
                "second_factor/recovery_codes/",
                self.admin_view(recovery_codes),
                name="recovery_codes",
            ),
            path("device/", self.admin_view(device_page), name="device"),
            path("own_login/", self.admin_view(own_login), name="own_login"),
            path("installation/", self.admin_view(installation), name="installation"),
            path(
                "organisation_switch/",
                self.admin_view(organisation_switch),
                name="organisation_switch",
            ),
            path("message_delivery/", self.admin_view(message_delivery), name="message_delivery"),
            re_path(rf"^({'|'.join(_MOVED)})/(.*)$", moved, name="moved"),
            # Without admin_view: for users who have entered only the password, too.
            path("logout/", self.logout, name="logout"),
            # No row has a page outside of the admin.
            *(p for p in super().get_urls() if getattr(p, "name", "") != "view_on_site"),
        ]

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        from config.admin.login import log_in  # noqa: PLC0415

        return log_in(request, ask_password=partial(super().login, request, extra_context))

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        from config.admin.passwords import change_password  # noqa: PLC0415

        return change_password(request, {**self.each_context(request), **(extra_context or {})})

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Unfold's, and the organisation to which the page is narrowed, if it is."""
        from accounts.admin.reach import id_in_lists, organisation_in_view  # noqa: PLC0415

        context: dict[str, Any] = super().each_context(request)
        if id_in_lists(request) is not None:
            context["narrowed_to"] = organisation_in_view(request)
        return context

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Empty: no page shows Django's list of apps, for which each page would ask every model."""
        return []

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        from config.admin.home import home  # noqa: PLC0415

        context = {**(extra_context or {}), "home": home(request, self)}
        response: TemplateResponse = super().index(request, context)
        return response

    def autocomplete_view(self, request: HttpRequest) -> HttpResponseBase:
        return ExactAutocomplete.as_view(admin_site=self)(request)

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Search within reach. Unfold's own view would cache results beyond a lost role."""
        from config.admin.search import search_page  # noqa: PLC0415

        return search_page(request)

    def app_index(
        self, request: HttpRequest, app_label: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the home page: the sidebar groups the lists, and not by app."""
        return redirect("admin:index")
