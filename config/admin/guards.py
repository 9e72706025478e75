"""What guards every page and action of a model admin: its scope, and a fresh proof if it needs one.

The model admin names its pages by the end of their URL's name (``add``, ``rotate``).
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern

# The site loads before the models, so modules that need models are imported where they are used.

View = Callable[..., HttpResponse]


class GuardedPages:
    """Mixin that ``MoonhookAdminSite.register`` puts before each model admin."""

    opts: Any
    admin_site: Any

    def get_urls(self) -> list[URLPattern]:
        patterns: list[URLPattern] = super().get_urls()  # type: ignore[misc]
        for pattern in patterns:
            if pattern.name:
                pattern.callback = self._guarded(self.page_of_url(pattern.name), pattern.callback)
        return patterns

    def page_of_url(self, name: str) -> str:
        """The page's name in the tables: without the model's."""
        return name.removeprefix(f"{self.opts.app_label}_{self.opts.model_name}_")

    def _guarded(self, page: str, view: View) -> View:
        needs_proof = page in getattr(self, "proved_pages", ())

        def guard(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            self._require(request, page, kwargs.get("object_id"))
            if needs_proof and (question := _question(request)):
                return question
            return view(request, *args, **kwargs)

        # The site's wrapper asks for the login and the form's token first.
        guarded: View = self.admin_site.admin_view(wraps(view)(guard))
        return guarded

    def _require(self, request: HttpRequest, page: str, object_id: str | None) -> None:
        """Raises ``RoleNeededError``. Pages without a table are those of superusers."""
        from accounts.admin.tenancy import TenantModelAdmin  # noqa: PLC0415
        from accounts.scopes import Scope  # noqa: PLC0415

        if isinstance(self, TenantModelAdmin):
            self.require(request, self.scope_of_page(page) or Scope.ALL, object_id)
            # Django ignores actions of a list that offers none.
            name = _action_of(request) if page == "changelist" else ""
            if name:
                self.require(request, self.scope_of_action(name) or Scope.ALL)

    def _may_act(self, request: HttpRequest, name: str) -> bool:
        from accounts.admin.tenancy import TenantModelAdmin  # noqa: PLC0415
        from accounts.scopes import Scope  # noqa: PLC0415

        if not isinstance(self, TenantModelAdmin):
            return True
        return self.opens(request, self.scope_of_action(name) or Scope.ALL)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """The list actions of the person's roles."""
        actions: dict[str, Any] = super().get_actions(request)  # type: ignore[misc]
        return {name: found for name, found in actions.items() if self._may_act(request, name)}

    def _filter_unfold_actions_by_permissions(
        self, request: HttpRequest, actions: list[Any], object_id: Any = None
    ) -> list[Any]:
        """The buttons of the person's role in the row's organisation."""
        from accounts.admin.tenancy import TenantModelAdmin  # noqa: PLC0415
        from accounts.scopes import Scope  # noqa: PLC0415

        allowed = actions
        if isinstance(self, TenantModelAdmin):
            row = self.get_object(request, str(object_id)) if object_id else None
            allowed = [
                each
                for each in actions
                if self.allows(
                    request,
                    self.scope_of_page(self.page_of_url(each.action_name)) or Scope.ALL,
                    row,
                )
            ]
        shown: list[Any] = super()._filter_unfold_actions_by_permissions(  # type: ignore[misc]
            request, allowed, object_id
        )
        return shown

    def _require_for_rows(self, request: HttpRequest, name: str, rows: Any) -> None:
        """Raises ``RoleNeededError`` if a selected row is of an organisation without the scope."""
        from accounts.admin.reach import RoleNeededError  # noqa: PLC0415
        from accounts.admin.tenancy import TenantModelAdmin  # noqa: PLC0415
        from accounts.scopes import Scope  # noqa: PLC0415

        if not isinstance(self, TenantModelAdmin):
            return
        scope = self.scope_of_action(name) or Scope.ALL
        self.require(request, scope)
        if self.has_wherever_visible(request, scope):
            return
        allowed = self.rows_with(request, scope).order_by().values("pk")
        if rows.order_by().exclude(pk__in=allowed).exists():
            raise RoleNeededError(scope)

    def response_action(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        name = _action_of(request)
        if name and request.POST.get("select_across", "0") != "0":
            self._require_for_rows(request, name, queryset)
        elif name and all(self._is_id(text) for text in selected):  # type: ignore[attr-defined]
            self._require_for_rows(request, name, queryset.filter(pk__in=selected))
        needs_proof = name in getattr(self, "proved_actions", ())
        if needs_proof and (question := _question(request)):
            return question
        response: HttpResponse | None = super().response_action(request, queryset)  # type: ignore[misc]
        return response


def _action_of(request: HttpRequest) -> str:
    """The list action of the form, or nothing. Raises ``BadRequest`` for several.

    Django takes the one that ``index`` counts, so the guards would check another than it runs.
    """
    names = request.POST.getlist("action")
    if len(names) > 1:
        raise BadRequest("A form has one action.")
    return names[0] if names else ""


def _question(request: HttpRequest) -> HttpResponse | None:
    """The redirect to the question; ``None`` while the proof is fresh."""
    from accounts.admin.step_up import ask_for_proof, is_proved  # noqa: PLC0415

    return None if is_proved(request) else ask_for_proof(request)


def with_guards(admin_class: type[Any]) -> type[Any]:
    """Put the mixin before the class, so that the class cannot override it."""
    bases = (GuardedPages, admin_class)
    return type(admin_class.__name__, bases, {"__module__": admin_class.__module__})
