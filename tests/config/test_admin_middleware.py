"""Admin pages have middleware of their own; other endpoints have protection without it."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from django.views.generic import RedirectView

from accounts.models import User
from config.admin.middleware import AdminMiddleware


class Noting:
    """Middleware that adds its name to the response."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response: HttpResponse = self.get_response(request)
        response["Noted"] = type(self).__name__ + response.get("Noted", "")
        return response


class First(Noting):
    def process_view(self, request: HttpRequest, *view: Any) -> None:
        request.META["hooks"] = [*request.META.get("hooks", []), "First"]


class Second(Noting):
    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse:
        request.META["hooks"] = [*request.META.get("hooks", []), "Second"]
        return HttpResponse("stopped")


class WithMore(Noting):
    def process_exception(self, request: HttpRequest, error: Exception) -> None:
        raise AssertionError


@pytest.fixture
def middleware(settings: Any) -> AdminMiddleware:
    settings.ADMIN_MIDDLEWARE = [f"{__name__}.First", f"{__name__}.Second"]
    return AdminMiddleware(lambda request: HttpResponse("page"))


def test_admin_pages_pass_the_middleware_in_order(middleware: AdminMiddleware) -> None:
    request = RequestFactory().get("/admin/")

    assert middleware(request)["Noted"] == "FirstSecond"
    response = middleware.process_view(request, None, (), {})
    assert response is not None
    assert response.content == b"stopped"
    assert request.META["hooks"] == ["First", "Second"]


@pytest.mark.parametrize("path", ["/hook/a/b/c", "/session", "/admin/graphql", "/user/graphql"])
def test_other_endpoints_skip_the_middleware(middleware: AdminMiddleware, path: str) -> None:
    request = RequestFactory().post(path)

    assert "Noted" not in middleware(request)
    assert middleware.process_view(request, None, (), {}) is None
    assert "hooks" not in request.META


def test_concurrent_requests_of_one_login_are_limited(settings: Any) -> None:
    """The limit is per cookie: finding the user would take several queries."""
    settings.ADMIN_MIDDLEWARE = [
        "core.http.admin_pages.ContentSecurityPolicy",
        "config.admin.middleware.LoginBulkhead",
    ]
    most = settings.ADMIN_AT_ONCE_PER_ORGANISATION + settings.ADMIN_WAITING // 2
    arrived, leave = Semaphore(0), Event()

    def stay(request: HttpRequest) -> HttpResponse:
        arrived.release()
        assert leave.wait(60)
        return HttpResponse("page")

    middleware = AdminMiddleware(stay)

    def send(cookie: str, path: str = "/admin/") -> HttpResponse:
        request = RequestFactory().get(path)
        request.COOKIES[settings.SESSION_COOKIE_NAME] = cookie
        return middleware(request)  # type: ignore[return-value]

    with ThreadPoolExecutor(most + 3) as executor:
        try:
            asked = [executor.submit(send, "one") for _ in range(most)]
            for _ in range(most):
                assert arrived.acquire(timeout=60)
            refused = send("one")
            others = [executor.submit(send, *who) for who in (("two",), ("",), ("one", "/session"))]
            for _ in others:
                assert arrived.acquire(timeout=60)
        finally:
            leave.set()

    assert (refused.status_code, refused["Retry-After"]) == (503, "1")
    assert b"Server busy" in refused.content
    assert "Content-Security-Policy" in refused
    assert {each.result().status_code for each in asked + others} == {200}
    assert send("one").status_code == 200


def test_middleware_with_an_unsupported_hook_is_refused(settings: Any) -> None:
    settings.ADMIN_MIDDLEWARE = [f"{__name__}.WithMore"]

    with pytest.raises(ImproperlyConfigured, match="process_exception"):
        AdminMiddleware(lambda request: HttpResponse())


def test_a_form_of_the_admin_without_its_token_is_refused(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    assert client.post("/admin/logout/").status_code == 403
    assert SESSION_KEY in client.session


def test_every_other_endpoint_protects_itself() -> None:
    """Their views check for cross-site requests themselves, or only redirect."""
    patterns = get_resolver().url_patterns
    within = [each for each in patterns if isinstance(each, URLResolver)]
    elsewhere = [each for each in patterns if isinstance(each, URLPattern)]

    assert [str(each.pattern) for each in within] == ["admin/"]
    assert [
        str(each.pattern)
        for each in elsewhere
        if not getattr(each.callback, "csrf_exempt", False)
        and getattr(each.callback, "view_class", None) is not RedirectView
    ] == []
