"""The desk has its middleware, and nobody else pays for it or goes without protection."""

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
from config.admin.middleware import Desk


class Noting:
    """Middleware that notes what passes."""

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
        raise AssertionError("nobody calls it")


@pytest.fixture
def desk(settings: Any) -> Desk:
    settings.DESK_MIDDLEWARE = [f"{__name__}.First", f"{__name__}.Second"]
    return Desk(lambda request: HttpResponse("page"))


def test_pages_of_the_admin_pass_in_order(desk: Desk) -> None:
    request = RequestFactory().get("/admin/")

    assert desk(request)["Noted"] == "FirstSecond"
    response = desk.process_view(request, None, (), {})
    assert response is not None
    assert response.content == b"stopped"
    assert request.META["hooks"] == ["First", "Second"]


@pytest.mark.parametrize("path", ["/hook/a/b/c", "/session", "/admin/graphql", "/user/graphql"])
def test_programs_pass_by(desk: Desk, path: str) -> None:
    request = RequestFactory().post(path)

    assert "Noted" not in desk(request)
    assert desk.process_view(request, None, (), {}) is None
    assert "hooks" not in request.META


def test_one_login_has_so_many_requests_at_once(settings: Any) -> None:
    """However it is asked for: whose login it is costs several queries to find out."""
    settings.DESK_MIDDLEWARE = [
        "core.http.admin_pages.ContentSecurityPolicy",
        "config.admin.middleware.LoginBulkhead",
    ]
    most = settings.ADMIN_AT_ONCE_PER_ORGANISATION + settings.ADMIN_WAITING // 2
    arrived, leave = Semaphore(0), Event()

    def stay(request: HttpRequest) -> HttpResponse:
        arrived.release()
        assert leave.wait(60)
        return HttpResponse("page")

    desk = Desk(stay)

    def ask(cookie: str, path: str = "/admin/") -> HttpResponse:
        request = RequestFactory().get(path)
        request.COOKIES[settings.SESSION_COOKIE_NAME] = cookie
        return desk(request)  # type: ignore[return-value]

    with ThreadPoolExecutor(most + 3) as executor:
        try:
            asked = [executor.submit(ask, "one") for _ in range(most)]
            for _ in range(most):
                assert arrived.acquire(timeout=60)
            refused = ask("one")
            others = [executor.submit(ask, *who) for who in (("two",), ("",), ("one", "/session"))]
            for _ in others:
                assert arrived.acquire(timeout=60)
        finally:
            leave.set()

    assert (refused.status_code, refused["Retry-After"]) == (503, "1")
    assert b"Server busy" in refused.content
    assert "Content-Security-Policy" in refused
    assert {each.result().status_code for each in asked + others} == {200}
    assert ask("one").status_code == 200


def test_middleware_that_wants_more_is_refused(settings: Any) -> None:
    settings.DESK_MIDDLEWARE = [f"{__name__}.WithMore"]

    with pytest.raises(ImproperlyConfigured, match="process_exception"):
        Desk(lambda request: HttpResponse())


def test_a_form_of_the_admin_without_its_token_is_refused(bob: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    assert client.post("/admin/logout/").status_code == 403
    assert SESSION_KEY in client.session


def test_every_other_address_looks_after_itself() -> None:
    """Their views judge cross-site requests themselves, or do nothing but point elsewhere."""
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
